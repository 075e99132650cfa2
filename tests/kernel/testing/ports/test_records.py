"""The contracts of records hold for those in memory, and find who breaks them."""

from __future__ import annotations

import pytest
from agenthost.testing import (
    AgentRowsContract,
    JournalContract,
    LedgerContract,
    ManualClock,
    MemoryContract,
    MemoryRecords,
    OpenRecords,
    PersonsContract,
    SessionsContract,
)
from agenthost.testing.ports.memory_records.rows import Rows


class InMemory:
    """The records of one dict of rows."""

    @pytest.fixture
    def opened(self, clock: ManualClock) -> OpenRecords:
        rows = Rows()
        return lambda: MemoryRecords(clock, rows)


class TestAgents(InMemory, AgentRowsContract):
    """Agents."""


class TestSessions(InMemory, SessionsContract):
    """Conversations."""


class TestJournal(InMemory, JournalContract):
    """Turns."""


class TestUsage(InMemory, LedgerContract):
    """Usage."""


class TestMemory(InMemory, MemoryContract):
    """Memory."""


class TestPersons(InMemory, PersonsContract):
    """People."""
