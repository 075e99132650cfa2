"""How much of a session can be kept whole: it is sent with each question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost import Conflict, InvalidInput
from agenthost.testing import ManualClock
from agenthost.testing.ports.records.scenes import ADA, HERE, say
from agenthost_records import open_records, register_schema, views
from agenthost_storage.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield store
    await store.close()


async def test_pins_have_a_number_and_a_size(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = open_records(store, ManualClock())
    await records.agents.add(ADA)
    await say(records, HERE, "one", "two", "x" * 900)
    monkeypatch.setattr(views, "MOST_PINS", 2)
    monkeypatch.setattr(views, "LARGEST_PIN", 500)
    with pytest.raises(InvalidInput, match="longer than 500"):
        await records.sessions.pin(HERE, 4)
    for seq in (0, 1, 1):
        await records.sessions.pin(HERE, seq)
    with pytest.raises(Conflict, match="2 messages"):
        await records.sessions.pin(HERE, 2)
    assert [each.seq for each in await records.sessions.pinned(HERE)] == [0, 1]
