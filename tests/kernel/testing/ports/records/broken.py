"""Records in memory of which one part breaks a promise."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping
from dataclasses import fields
from typing import Any

import pytest
from agenthost import Records
from agenthost.testing import ManualClock, MemoryRecords, OpenRecords
from agenthost.testing.ports.memory_records.agents import MemoryAgents
from agenthost.testing.ports.memory_records.journal import MemoryJournal
from agenthost.testing.ports.memory_records.ledger import MemoryLedger
from agenthost.testing.ports.memory_records.persons import MemoryPersons
from agenthost.testing.ports.memory_records.rows import Rows
from agenthost.testing.ports.memory_records.sessions import MemorySessions
from agenthost.testing.ports.memory_records.uploads import MemoryUploads
from agenthost.testing.ports.memory_records.values import MemoryValues
from agenthost.testing.ports.records.scenes import ADA, BOB

from ..finding import finds

PARTS: Mapping[type, str] = {
    MemoryAgents: "agents",
    MemorySessions: "sessions",
    MemoryJournal: "journal",
    MemoryLedger: "usage",
    MemoryValues: "memory",
    MemoryPersons: "persons",
    MemoryUploads: "uploads",
}


class Lazy:
    """Something that begins when it is awaited."""

    def __init__(self, begin: Any, *given: Any) -> None:
        self._begin = begin
        self._given = given

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._begin(*self._given).__await__()


class InMemory:
    """What a contract opens: the records of the same rows each time."""

    @pytest.fixture
    def opened(self, clock: ManualClock) -> OpenRecords:
        rows = Rows()
        return lambda: MemoryRecords(clock, rows)


def opens(broken: type[Any], clock: ManualClock) -> OpenRecords:
    """Give what opens records with one broken part, or with broken rows."""
    rows = broken() if issubclass(broken, Rows) else Rows()

    def opened() -> Records:
        whole = MemoryRecords(clock, rows)
        parts = {field.name: getattr(whole, field.name) for field in fields(Records)}
        for base, name in PARTS.items():
            if issubclass(broken, base):
                parts[name] = remade(broken, whole, clock, rows)
        return Records(**parts)

    return opened


def remade(broken: type[Any], whole: Records, clock: ManualClock, rows: Rows) -> Any:
    """Make a broken part that writes as the same process as the others."""
    if issubclass(broken, MemorySessions):
        return broken(rows, clock)
    if issubclass(broken, MemoryJournal):
        assert isinstance(whole.sessions, MemorySessions)
        return broken(rows, whole.sessions._seat)
    return broken(rows)


async def finds_broken(broken: type[Any], test: Any, **given: Any) -> None:
    """Demand that a test fails with the broken part."""
    clock = ManualClock()
    opened = opens(broken, clock)

    async def tested() -> None:
        records = opened()
        for agent in (ADA, BOB):
            await records.agents.add(agent)
        known = {"records": records, "opened": opened, "clock": clock, **given}
        await test(*(known[name] for name in inspect.signature(test).parameters))

    await finds(tested)
