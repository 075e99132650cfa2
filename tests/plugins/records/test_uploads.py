"""Files of people in a store: damage is found, lists read no bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost import Unavailable
from agenthost.testing import ManualClock
from agenthost.testing.ports.records.scenes import ADA
from agenthost.testing.ports.records.uploads import DATA, FILE, ROOM
from agenthost_records import open_records, register_schema
from agenthost_records.uploads import _ALL, _ONE, uploads
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import update


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield store
    await store.close()


async def test_a_damaged_file_is_not_given_out(store: SqliteStore) -> None:
    records = open_records(store, ManualClock())
    await records.agents.add(ADA)
    await records.uploads.add(FILE, DATA, ROOM)
    assert await records.uploads.read(ADA.id, FILE.id) == DATA
    damage = update(uploads).values(content=DATA[::-1])
    await store.write(lambda connection: connection.execute(damage).rowcount)
    with pytest.raises(Unavailable, match="damaged"):
        await records.uploads.read(ADA.id, FILE.id)


def test_what_is_told_of_files_is_read_without_their_bytes() -> None:
    for statement in (_ONE, _ALL):
        assert "content" not in {each.name for each in statement.selected_columns}
