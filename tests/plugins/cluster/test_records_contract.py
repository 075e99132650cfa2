"""The rows of agents and turns keep every promise on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
from agenthost import Store
from agenthost.testing import (
    AgentRowsContract,
    JournalContract,
    LedgerContract,
    ManualClock,
    MemoryContract,
    OpenRecords,
    PersonsContract,
    SessionsContract,
    UploadsContract,
)
from agenthost_cluster import open_store
from agenthost_records import late, open_records, register_schema

pytestmark = pytest.mark.conformance


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    store = await open_store(database, register_schema())
    yield store
    await store.close()


class InAStore:
    """The records of one database."""

    @pytest.fixture
    def opened(
        self, store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> OpenRecords:
        monkeypatch.setattr(late, "TRY_AFTER", 0.0)
        return partial(open_records, store, clock)


class TestAgents(InAStore, AgentRowsContract):
    """Agents."""


class TestSessions(InAStore, SessionsContract):
    """Conversations."""


class TestJournal(InAStore, JournalContract):
    """Turns."""


class TestUsage(InAStore, LedgerContract):
    """Usage."""


class TestMemory(InAStore, MemoryContract):
    """Memory."""


class TestPersons(InAStore, PersonsContract):
    """People."""


class TestUploads(InAStore, UploadsContract):
    """Files."""
