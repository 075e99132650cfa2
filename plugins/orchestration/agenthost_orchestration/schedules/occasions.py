"""Occasions of schedules: what they are made of, and what stands in their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from agenthost import AgentState, Host, JsonObject, NotFound, timestamp

from ..background.errands import Occasion, OccasionState
from .schedule import Schedule, occasion_id
from .texts import KIND

if TYPE_CHECKING:
    from sqlalchemy import Connection

RUNNING: Mapping[OccasionState, str] = {
    OccasionState.DUE: "what was due before has not begun yet",
    OccasionState.RUNNING: "what was due before is still running",
    OccasionState.WAITING: "what was due before still waits for a person",
}


class Occasions(Protocol):
    """Writes occasions, has them done, and knows what came of them."""

    def write(self, connection: Connection, occasions: Sequence[Occasion]) -> object:
        """Keep those whose key is new."""

    def wake(self) -> object:
        """Have done what is due; called after the commit."""

    async def list(
        self, source: str, source_id: str, *, limit: int, after: str
    ) -> Sequence[Occasion]:
        """Give the occasions of a source, newest first, behind one where it is named.

        Raises:
            NotFound: There is no occasion ``after``.
        """

    async def occasion(self, occasion_id: str) -> Occasion:
        """Give an occasion, or raise NotFound."""


def occasion_of(
    schedule: Schedule,
    moment: tuple[str, float],
    now: float,
    *,
    missed: str = "",
    payload: JsonObject | None = None,
) -> Occasion:
    """Make an occasion of a schedule: one that is due, or ``missed`` for a reason.

    Args:
        schedule: Whose time it is.
        moment: What the time is called, and the time.
        now: When this is written.
        missed: Why nothing is done, "" where it is.
        payload: What is to be kept with it.
    """
    key, at = moment
    return Occasion(
        id=occasion_id(schedule.id, key),
        source=KIND,
        source_id=schedule.id,
        key=key,
        payload={"name": schedule.name, "at": timestamp(at), **(payload or {})},
        at=at,
        state=OccasionState.MISSED if missed else OccasionState.DUE,
        detail=missed,
        created_at=now,
        ended_at=now if missed else None,
        owner=schedule.owner,
        labels=schedule.errand.labels,
    )


async def in_the_way(host: Host, occasions: Occasions, schedule: Schedule) -> str:
    """Tell why a schedule cannot be done now, "" when it can."""
    if (agent_id := schedule.errand.agent_id) and _suspended(host, agent_id):
        return "its agent is suspended"
    if not schedule.last:
        return ""
    try:
        last = await occasions.occasion(schedule.last)
    except NotFound:
        return ""
    return RUNNING.get(last.state, "")


def _suspended(host: Host, agent_id: str) -> bool:
    try:
        return host.agents.get(agent_id).state is AgentState.SUSPENDED
    except NotFound:
        return False
