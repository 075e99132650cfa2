"""The schedules that agents' manifests say: made, changed and removed with them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import floor
from typing import TYPE_CHECKING

from agenthost import (
    Agent,
    AgentSpawned,
    AgentState,
    AgentTerminated,
    AgentUpdated,
    Host,
    InvalidInput,
    Keep,
    LifecycleEvent,
    NotFound,
    PrincipalKind,
)

from .manifest import AUTONOMOUS, SCHEDULE
from .telling import Telling
from .texts import AGENTS, ONE

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .schedule import Schedule

PERIODIC = (
    "It is time for your regular work. Do what your instructions have you do at such "
    "times, and say in a sentence or two what you did."
)
CONTINUOUS = (
    "Look whether there is anything for you to do now, by your instructions and by "
    "what you remember. Do it and say in a sentence what you did; if there is nothing, "
    "say so."
)
KEYS = frozenset({"schedule", "autonomous"})

Conditions = Callable[[str, Sequence[str]], Awaitable[None]]
log = logging.getLogger(__name__)


class Following:
    """Has the rows be what manifests say, however often it is asked.

    What a crash leaves between an agent's commit and its schedule's, the next start
    makes up for. An agent's end takes its schedules along in its own commit.

    Args:
        host: The daemon.
        telling: Writes changes, and tells of them.
        wake: Has :meth:`follow` called soon.
        conditions: Told an agent's id and its proactive conditions, none among them.
    """

    def __init__(
        self,
        host: Host,
        telling: Telling,
        wake: Callable[[], object],
        conditions: Conditions,
    ) -> None:
        self._host = host
        self._telling = telling
        self._wake = wake
        self._conditions = conditions
        self._agents: set[str] = set()
        self._ends: list[Callable[[], None]] = []

    async def start(self) -> None:
        """Listen, and begin with all agents that have schedules, or are to have."""
        events = self._host.events
        kinds = (AgentSpawned, AgentUpdated, AgentTerminated)
        self._ends = [
            events.record(_kept, AgentTerminated),
            events.subscribe(self._note, *kinds),
        ]
        self._agents.update(
            agent.id for agent in self._host.agents.list() if _says_when(agent)
        )
        rows = await self._host.store.read(AGENTS)
        self._agents.update(row["agent_id"] for row in rows)

    def stop(self) -> None:
        """Listen no more."""
        for end in self._ends:
            end()

    def _note(self, event: LifecycleEvent) -> None:
        self._agents.add(event.subject)
        self._wake()

    async def follow(self) -> None:
        """Have the schedules of agents be as their manifests are now."""
        while self._agents:
            agent_id = next(iter(self._agents))
            await self._follow(agent_id)
            self._agents.discard(agent_id)

    async def _follow(self, agent_id: str) -> None:
        try:
            agent = self._host.agents.get(agent_id)
        except NotFound:
            await self._host.store.write(partial(_remove_all, agent_id=agent_id))
            return
        if agent.state is AgentState.TERMINATED:
            return
        try:
            await self._keep(agent)
        except InvalidInput as error:
            # It was kept while nobody read it.
            log.warning("the schedule of agent %s: %s", agent.name, error.message)

    async def _keep(self, agent: Agent) -> None:
        from .schedule import manifest_id, schedule_of

        says = _says_when(agent)
        proactive = SCHEDULE.of(agent.manifest).schedule.proactive if says else None
        await self._conditions(agent.id, proactive.conditions if proactive else ())
        own = manifest_id(agent.id)
        row = await self._host.store.first(ONE, {"id": own})
        if row is None and not says:
            return
        there = None if row is None else schedule_of(row)
        await self._replace(there, _wanted(self._host, agent, own, there))

    async def _replace(self, there: Schedule | None, wanted: Schedule | None) -> None:
        from .events import ScheduleChanged, ScheduleCreated, ScheduleDeleted

        telling = self._telling
        if wanted is None:
            if there is not None:
                event = telling.event(ScheduleDeleted, there)
                await telling.write(partial(_remove, schedule_id=there.id), event)
        elif there is None or _terms(there) != _terms(wanted):
            kind = ScheduleCreated if there is None else ScheduleChanged
            event = telling.event(kind, wanted)
            await telling.write(partial(_put, schedule=wanted), event)


def _says_when(agent: Agent) -> bool:
    return not KEYS.isdisjoint(agent.manifest.model_extra or ())


def _wanted(
    host: Host, agent: Agent, schedule_id: str, there: Schedule | None
) -> Schedule | None:
    """Give the schedule that a manifest says, armed; None where it says none.

    Raises:
        InvalidInput: It is never due, or was kept while nobody read it.
    """
    from ..background.errands import Creator, Errand
    from .drafts import micro
    from .schedule import Schedule
    from .settings import SchedulesSection
    from .times import Times
    from .when import When

    said, alone = SCHEDULE.of(agent.manifest).schedule, AUTONOMOUS.of(agent.manifest)
    now = host.clock.time()
    if said.periodic is not None:
        from .spoken import when_of

        when, prompt = when_of(said.periodic.cron, alone.zone), PERIODIC
    elif said.continuous is not None:
        when, prompt = When(every=said.continuous.check_interval_secs), CONTINUOUS
    else:
        return None
    when = replace(when, zone=alone.zone, quiet=alone.quiet_hours)
    if when.every:
        same = there is not None and there.when.every == when.every
        anchor = there.when.anchor if there is not None and same else float(floor(now))
        when = replace(when, anchor=anchor)
    allowance = alone.allowance_usd or host.settings(SchedulesSection).allowance_usd
    owner = f"{PrincipalKind.AGENT}:{agent.name}"
    return Schedule(
        id=schedule_id,
        name=agent.name,
        when=when,
        errand=Errand(
            # By its id: another agent of its name is not it.
            Creator(str(PrincipalKind.AGENT), agent.id),
            agent_id=agent.id,
            prompt=prompt,
            allowance_micro_usd=micro(allowance),
        ),
        origin="manifest",
        next_at=Times(when).after(now),
        revision=0 if there is None else there.revision + 1,
        created_at=now if there is None else there.created_at,
        updated_at=now,
        owner=owner,
    )


def _terms(schedule: Schedule) -> Iterable[object]:
    return schedule.name, schedule.when, schedule.errand, schedule.misfire


def _kept(event: AgentTerminated) -> Keep:
    return partial(_remove_all, agent_id=event.subject)


def _remove_all(connection: Connection, agent_id: str) -> None:
    from .tables import remove_of_agent

    remove_of_agent(connection, agent_id)


def _remove(connection: Connection, schedule_id: str) -> None:
    from .tables import remove

    remove(connection, schedule_id)


def _put(connection: Connection, schedule: Schedule) -> None:
    from .tables import keep

    keep(connection, schedule)
