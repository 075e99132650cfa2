"""A world of events and triggers that crashes, beside a model of what it should do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from agenthost import OPERATOR, Conflict, Context, Custom, Keep, SchemaSpec
from agenthost.testing import ManualClock, MemoryEvents, MemoryStore
from agenthost_orchestration.background.errands import Creator, Occasion
from agenthost_orchestration.triggers.patterns import Pattern
from agenthost_orchestration.triggers.settings import TriggersSection
from agenthost_orchestration.triggers.tables import metadata
from agenthost_orchestration.triggers.trigger import Trigger
from agenthost_orchestration.triggers.triggers import Triggers
from sqlalchemy import Connection, Engine

from . import rehearsal

SCHEMAS = (
    SchemaSpec("triggers", metadata),
    SchemaSpec("rehearsed", rehearsal.metadata),
)
AGENTS = ("ada", "bob")
Fate = tuple[str, str, str]
"""A trigger, an event, and "" or what held it back."""


@dataclass
class Wish:
    """A trigger as the model knows it."""

    trigger: Trigger
    enabled: bool = True
    fires: int = 0
    fired: list[tuple[str, float]] = field(default_factory=list)
    noted: list[tuple[str, float]] = field(default_factory=list)

    @property
    def rest(self) -> float:
        return self.trigger.cooldown_secs or 0.0

    def waits(self, event: Custom) -> bool:
        """Whether it is for the event, as far as its pattern says."""
        wanted = self.trigger.pattern.text
        own = event.source == self.trigger.agent_id and not self.trigger.own_events
        return self.enabled and not own and wanted in f'The event "{event.type}"'


class Model:
    """What triggers should come to, in a few lines."""

    def __init__(self) -> None:
        self.wishes: dict[str, Wish] = {}
        self.fates: set[Fate] = set()

    def happens(self, event: Custom, now: float) -> None:
        fired = sum((each, event.id, "") in self.fates for each in self.wishes)
        for name, wish in self.wishes.items():
            if not wish.waits(event) or self._known(name, event):
                continue
            code = "depth" if event.depth >= 5 else "many" if fired >= 10 else ""
            rests = _within(wish.fired, event.subject, now - wish.rest, now)
            noted = bool(code) and _within(wish.noted, code, now - 3600, now)
            # What is too deep is that whether or not a trigger rests.
            if noted or (rests and code != "depth"):
                continue
            told = wish.noted if code else wish.fired
            told.append((code or event.subject, now))
            self.fates.add((name, event.id, code))
            if not code:
                fired += 1
                wish.fires += 1
                wish.enabled = wish.fires != wish.trigger.max_fires

    def _known(self, name: str, event: Custom) -> bool:
        return any(
            (name, event.id, code) in self.fates for code in ("", "depth", "many")
        )


def _within(
    told: list[tuple[str, float]], about: str, since: float, now: float
) -> bool:
    return any(subject == about and since < at <= now for subject, at in told)


class World:
    """Triggers over rows that outlive them."""

    def __init__(self, engine: Engine) -> None:
        self.clock = ManualClock()
        self.model = Model()
        self.events: list[Custom] = []
        self._engine = engine

    async def start(self) -> None:
        """Come up on what is on disk."""
        self.store = MemoryStore(SCHEMAS, self._engine)
        plugins = SimpleNamespace(implementations=lambda _: ())
        agents = SimpleNamespace(get=lambda agent: agent)
        host: Any = SimpleNamespace(
            clock=self.clock,
            store=self.store,
            agents=agents,
            plugins=plugins,
            settings=lambda _: TriggersSection(),
        )
        host.events = self.bus = MemoryEvents(host)
        self.background = rehearsal.Rehearsal(host)
        self.triggers = Triggers(host, self.background)
        await self.triggers.start()

    async def crash(self) -> None:
        """End without a goodbye: whatever was to be done next is not."""
        self.bus._recorders.clear()
        self.bus._subscribers.clear()
        await self.store.close()
        await self.settle()
        await self.start()

    async def settle(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)

    async def wish(self, word: str, **terms: Any) -> None:
        """Make a trigger."""
        terms = {"created_at": float(len(self.model.wishes))} | terms
        trigger = Trigger(
            id=str(uuid4()),
            pattern=Pattern("content_match", f'event "{word}'),
            prompt_template="{{event}}",
            creator=Creator("operator", "operator"),
            **terms,
        )
        self.model.wishes[trigger.id] = Wish(trigger)
        await self.triggers.create(Context(OPERATOR), trigger)

    async def switch(self, number: int) -> None:
        """Enable or disable one, as a person does; a spent one stays as it is."""
        found = list(self.model.wishes.values())
        if not found:
            return
        wish = found[number % len(found)]
        if 0 < wish.trigger.max_fires <= wish.fires:
            return
        wish.enabled = not wish.enabled
        why = {"enabled": int(wish.enabled), "paused": "" if wish.enabled else "off"}
        await self.triggers.change(Context(OPERATOR), wish.trigger.id, why)

    def ask(self, event: Custom) -> Keep | None:
        self.events.append(event)
        return self.bus.keeping(event)

    async def commit(self, event: Custom, keep: Keep | None, *, told: bool) -> None:
        now = self.clock.time()
        self.model.happens(event, now)
        await self.store.write(keep or (lambda _: None))
        if told:
            self.bus.publish(event)

    async def fail(self, keep: Keep | None) -> None:
        def refuse(connection: Connection) -> None:
            del connection
            raise Conflict("it cannot be")

        written = self.store.write(keep or (lambda _: None), refuse)
        assert isinstance(written.exception(), Conflict)

    async def fates(self) -> set[Fate]:
        """What is on disk; each occasion once, or this would be less than the rows."""
        found: list[Occasion] = []
        for name in self.model.wishes:
            found += await self.background.list("trigger", name, limit=10_000)
        fates = {(each.source_id, each.key, each.code) for each in found}
        assert len(fates) == len(found)
        return fates

    async def counts(self) -> Sequence[tuple[str, int, bool]]:
        rows = await self.store.read("SELECT id, fire_count, enabled FROM triggers")
        assert {
            (row["id"], row["fire_count"], bool(row["enabled"])) for row in rows
        } == {(each.id, each.fire_count, each.enabled) for each in self.triggers.list()}
        return sorted(
            (row["id"], row["fire_count"], bool(row["enabled"])) for row in rows
        )
