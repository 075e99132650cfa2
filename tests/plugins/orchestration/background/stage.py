"""A source of the test's own, in a daemon of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import uuid4

from agenthost import Denied, Host, NotFound
from agenthost.testing.daemons import RunningDaemon
from agenthost_orchestration.background.background import Background
from agenthost_orchestration.background.errands import (
    OPEN,
    Creator,
    Errand,
    Occasion,
    OccasionState,
)
from agenthost_orchestration.orchestration import orchestration_of

PATIENCE = 30.0
ME = Creator("operator", "operator")


@dataclass
class Sundial:
    """A source that does what a test tells it, and remembers what it is told."""

    kind: str = "schedule"
    errands: dict[str, Errand] = field(default_factory=dict)
    ends: list[Occasion] = field(default_factory=list)
    pauses: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def errand(self, host: Host, occasion: Occasion) -> Errand:
        self.asked.append(occasion.id)
        if occasion.source_id in self.pauses:
            raise Denied(f"paused: {self.pauses[occasion.source_id]}")
        if occasion.source_id not in self.errands:
            raise NotFound("schedule", occasion.source_id)
        return self.errands[occasion.source_id]

    async def ended(self, host: Host, occasion: Occasion) -> None:
        self.ends.append(occasion)

    async def pause(self, host: Host, source_id: str, reason: str) -> None:
        self.pauses[source_id] = reason


@dataclass
class Stage:
    """A daemon with a sundial."""

    daemon: RunningDaemon
    dial: Sundial

    @property
    def background(self) -> Background:
        return orchestration_of(self.daemon.daemon).background

    async def due(self, source_id: str = "noon", key: str = "", **facts: Any) -> str:
        """Write an occasion and have it done."""
        occasion = self.occasion(source_id, key, **facts)
        await self.write(occasion)
        self.background.wake()
        return occasion.id

    def occasion(
        self, source_id: str = "noon", key: str = "", **facts: Any
    ) -> Occasion:
        now, id_ = self.daemon.daemon.clock.time(), str(uuid4())
        made = Occasion(
            id_, self.dial.kind, source_id, key or id_, {}, now, created_at=now
        )
        return replace(made, **facts)

    async def write(self, *occasions: Occasion) -> list[Occasion]:
        writing = partial(Background.write, occasions=occasions)
        return list(await self.daemon.daemon.store.write(writing))

    async def ended(self, occasion_id: str) -> Occasion:
        """Wait until its source was told of the end of an occasion."""

        async def told() -> bool:
            return any(each.id == occasion_id for each in self.dial.ends)

        try:
            await wait_until(told, "its source is told of the end")
        except AssertionError:
            raise AssertionError(await self.background.occasion(occasion_id)) from None
        return await self.background.occasion(occasion_id)

    async def done(self, source_id: str = "noon", **facts: Any) -> Occasion:
        """Have an occasion done, and see what came of it."""
        return await self.ended(await self.due(source_id, **facts))

    async def stands(self, occasion_id: str, state: OccasionState) -> Occasion:
        """Wait until an occasion stands so."""

        async def holds() -> bool:
            return (await self.background.occasion(occasion_id)).state is state

        try:
            await wait_until(holds, f"it is {state}")
        except AssertionError:
            raise AssertionError(await self.background.occasion(occasion_id)) from None
        return await self.background.occasion(occasion_id)

    async def open(self) -> int:
        """How many have not ended."""
        found = await self.background.list(limit=500)
        return sum(each.state in OPEN for each in found)


def stage_of(daemon: RunningDaemon, dial: Sundial | None = None) -> Stage:
    """Give a daemon a source; what it finds due at its start needs one before."""
    dial = dial or Sundial()
    # In place of the daemon's own source of this kind.
    orchestration_of(daemon.daemon).background._sources[dial.kind] = dial
    return Stage(daemon, dial)


async def wait_until(
    holds: Callable[[], Awaitable[bool]], what: str, patience: float = PATIENCE
) -> None:
    """Wait until something is so."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while not await holds():
        assert loop.time() < deadline, f"it never came to this: {what}"
        await asyncio.sleep(0.005)
