"""The rows of a store keep every promise of the port RECORDS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

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
from agenthost_records import late, open_records, register_schema
from agenthost_storage import open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    url = f"sqlite:///{tmp_path / 'agenthost.db'}"
    store = await open_store(url, register_schema())
    yield store
    await store.close()


class InAStore:
    """The records of one database file."""

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
