"""A daemon with triggers, a clock that stands still, and what becomes of its events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenthost import OPERATOR, Context, Custom, Event, Keep
from agenthost.testing import Daemons, ManualClock, RunningAgent, RunningDaemon
from agenthost_orchestration.background.errands import Occasion
from agenthost_orchestration.orchestration import Orchestration, orchestration_of
from agenthost_orchestration.triggers.triggers import Triggers

from . import rehearsal

ORDERS = {"content_match": {"substring": 'event "order'}}
"""What waits for the custom events of these tests."""


@dataclass
class Stage:
    """A daemon with an agent whose triggers are looked at."""

    daemon: RunningDaemon
    clock: ManualClock
    agent: RunningAgent

    @property
    def area(self) -> Orchestration:
        return orchestration_of(self.daemon.daemon)

    @property
    def triggers(self) -> Triggers:
        return self.area.triggers

    @property
    def woken(self) -> int:
        background = self.area.background
        assert isinstance(background, rehearsal.Rehearsal)
        return background.woken

    async def trigger(self, pattern: Any = ORDERS, **terms: Any) -> str:
        body = {"agent_id": self.agent.id, "pattern": pattern, **terms}
        answer = await self.daemon.http.post("/api/triggers", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["trigger_id"])

    async def shown(self, trigger_id: str) -> dict[str, Any]:
        answer = await self.daemon.http.get(f"/api/triggers/{trigger_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def change(self, trigger_id: str, **changes: Any) -> None:
        answer = await self.daemon.http.put(f"/api/triggers/{trigger_id}", json=changes)
        assert answer.status_code == 200, answer.text

    async def occasions(self, trigger_id: str) -> list[Occasion]:
        """What is on disk, once what was begun is settled."""
        await self.settled()
        return list(await self.area.background.list("trigger", trigger_id, limit=500))

    async def settled(self) -> None:
        await settled(self.daemon)

    async def publish(self, type_: str = "order", data: Any = None) -> str:
        """Publish a custom event as a person does."""
        body = {"type": type_, "data": data or {}}
        answer = await self.daemon.http.post("/api/events", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["event_id"])

    async def cause(self, event: Event, *, published: bool = True) -> None:
        """Cause an event as whoever causes one does: asked, committed, told."""
        keep = self.asked(event)
        if keep is not None:
            await self.daemon.daemon.store.write(keep)
        if published:
            self.daemon.daemon.events.publish(event)

    def asked(self, event: Event) -> Keep | None:
        return self.daemon.daemon.events.keeping(event)

    def custom(self, type_: str = "order", **facts: Any) -> Custom:
        subject = facts.pop("subject", "shop")
        data = facts.pop("data", {})
        return Custom(subject, self.clock.time(), type_, data, **facts)


async def settled(daemon: RunningDaemon) -> None:
    """Wait until nothing is being written or read of triggers."""
    watch = orchestration_of(daemon.daemon).triggers._watch
    # What the writer's thread hands over is on the loop once another write is back.
    await daemon.daemon.store.write(lambda _: None)
    for _ in range(3):
        await asyncio.sleep(0)
        while watch._tasks:
            await asyncio.gather(*watch._tasks)
            await asyncio.sleep(0)


async def stage_at(
    daemons: Daemons, home: Path | None = None, config: str = "", agent: str = "tester"
) -> Stage:
    """Start a daemon at a home, with the agent of a name."""
    clock = ManualClock()
    daemon = await daemons.start(
        home=home,
        config=rehearsal.CONFIG + config,
        plugins=[rehearsal.plugin()],
        clock=clock,
    )
    known = {each.name for each in daemon.daemon.agents.list()}
    found = daemon.known_agent(agent) if agent in known else await daemon.agent(agent)
    return Stage(daemon, clock, found)


def operator() -> Context:
    """The context of what the operator does."""
    return Context(OPERATOR)
