"""A schedule, and how its row reads."""

from __future__ import annotations

import json
from dataclasses import asdict, field
from typing import Any
from uuid import UUID, uuid5

from agenthost import Row
from agenthost_values.value_class import value_class

from ..background.errands import Creator, Delivery, Errand, SessionMode
from .when import When

NAMES = UUID("b5d0a3a8-6f0e-4a51-9a3c-5f3f0c6f6d21")
"""Names what a schedule makes: the same thing has the same id, however often."""


DAY = 86_400


@value_class
class Misfire:
    """``skip`` does nothing late, ``once`` the last time, ``within`` only so soon."""

    policy: str = "within"
    within: int = DAY

    def allows(self, late: float) -> bool:
        """Tell whether something is done so many seconds late."""
        if self.policy == "within":
            return late <= self.within
        return self.policy == "once"


@value_class
class Held:
    """Times that passed while something stood in the way, told of when it is gone."""

    first: float = 0.0
    last: float = 0.0
    count: int = 0
    why: str = ""


@value_class
class Schedule:
    """A schedule as it stands; times are epoch seconds.

    Args:
        id: Its own.
        name: What people call it; two may have one name.
        when: When it is due.
        errand: What is done then, for whom and on which terms.
        misfire: What becomes of times at which nothing ran.
        enabled: Whether it is due at all.
        paused: Why it is not, where it was not a person who switched it off.
        origin: ``manifest`` where its agent's manifest says it, else "".
        next_at: When it is due next, None where it never is again.
        last: The id of what it did last, "" for nothing.
        held: What it could not do since.
        revision: How often somebody has changed it.
        created_at: When it was made.
        updated_at: When it was changed by somebody.
        owner: Who made it so (``kind:name``).
    """

    id: str
    name: str
    when: When
    errand: Errand
    misfire: Misfire = field(default_factory=Misfire)
    enabled: bool = True
    paused: str = ""
    origin: str = ""
    next_at: float | None = None
    last: str = ""
    held: Held = field(default_factory=Held)
    revision: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    owner: str = ""

    @property
    def over(self) -> bool:
        """Whether it is never due again."""
        return self.enabled and self.next_at is None

    @property
    def by_agent(self) -> bool:
        """Whether an agent has made it for itself."""
        return self.errand.creator.kind == "agent" and not self.origin


def occasion_id(schedule_id: str, key: str) -> str:
    """Give the id of the occasion of a schedule that has this key."""
    return str(uuid5(NAMES, f"{schedule_id} {key}"))


def manifest_id(agent_id: str) -> str:
    """Give the id of the schedule that an agent's manifest says."""
    return str(uuid5(NAMES, f"manifest {agent_id}"))


def schedule_of(row: Row | Any) -> Schedule:
    """Read a schedule from its row."""
    terms = json.loads(row["terms"])
    errand = terms["errand"]
    return Schedule(
        id=row["id"],
        name=row["name"],
        when=When(**terms["when"]),
        errand=Errand(
            **{
                **errand,
                "creator": Creator(**errand["creator"]),
                "delivery": Delivery(**errand["delivery"]),
                "session": SessionMode(errand["session"]),
                "labels": frozenset(json.loads(row["labels"])),
            }
        ),
        misfire=Misfire(**terms["misfire"]),
        enabled=bool(row["enabled"]),
        paused=row["paused"],
        origin=row["origin"],
        next_at=row["next_at"],
        last=row["last"],
        held=Held(**json.loads(row["held"])),
        revision=row["revision"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        owner=row["owner"],
    )


def row_of(schedule: Schedule) -> dict[str, Any]:
    """Write a schedule as its row."""
    errand = schedule.errand
    terms = {
        "when": asdict(schedule.when),
        "misfire": asdict(schedule.misfire),
        "errand": {**asdict(errand), "labels": []},
    }
    return {
        "id": schedule.id,
        "name": schedule.name,
        "agent_id": errand.agent_id,
        "terms": json.dumps(terms, ensure_ascii=False),
        "enabled": int(schedule.enabled),
        "paused": schedule.paused,
        "origin": schedule.origin,
        "by_agent": int(schedule.by_agent),
        "allowance": errand.allowance_micro_usd,
        "next_at": schedule.next_at,
        "last": schedule.last,
        "held": json.dumps(asdict(schedule.held)),
        "revision": schedule.revision,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        "owner": schedule.owner,
        "labels": json.dumps(sorted(errand.labels)),
    }
