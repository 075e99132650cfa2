"""What was deleted or written over leaves the write-ahead log."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from agenthost_storage.sqlite import SqliteStore, wal
from sqlalchemy import delete

from .rows import ITEMS, SCHEMA, adding, names

CANARY = "sk-canary-" + "x" * 400


def log_of(path: Path) -> bytes:
    return path.with_name(f"{path.name}-wal").read_bytes()


@pytest.fixture
async def brief(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SqliteStore]:
    """A store that empties its log after a moment."""
    monkeypatch.setattr(wal, "LATEST", 0.02)
    monkeypatch.setattr(wal, "AGAIN", 0.02)
    store = await SqliteStore.open(path, [SCHEMA])
    yield store
    await store.close()


async def emptied(path: Path) -> None:
    async with asyncio.timeout(30):
        while await asyncio.to_thread(log_of, path):
            pass


async def test_a_deleted_value_is_nowhere_on_the_disk_soon_after(
    brief: SqliteStore, path: Path
) -> None:
    await brief.write(adding(CANARY))
    await brief.write(lambda connection: connection.execute(delete(ITEMS)).rowcount)
    await emptied(path)
    assert CANARY.encode() not in await asyncio.to_thread(path.read_bytes)


async def test_until_then_it_stands_in_the_log(store: SqliteStore, path: Path) -> None:
    await store.write(adding(CANARY))
    await store.write(lambda connection: connection.execute(delete(ITEMS)).rowcount)
    assert CANARY.encode() in log_of(path)
    assert wal.LATEST <= 60


async def test_a_long_read_holds_the_log_but_no_write(
    brief: SqliteStore, path: Path
) -> None:
    await brief.write(adding("first"))
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM items").fetchall()
        for number in range(20):
            await brief.write(adding(str(number)))
        assert log_of(path)
        assert brief.healthy
        reader.execute("ROLLBACK")
    await emptied(path)
    assert len(await names(brief)) == 21
