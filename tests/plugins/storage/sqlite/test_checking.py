"""A database that was closed cleanly is looked through while it is in use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from agenthost import ConfigError, Unavailable
from agenthost_storage.sqlite import SqliteStore, checking
from sqlalchemy import insert

from .rows import ITEMS, SCHEMA, adding, names

PAGE = 4096


async def closed_cleanly(path: Path) -> None:
    store = await SqliteStore.open(path, [SCHEMA])
    rows = [{"name": f"{number:05d}" + "x" * 500} for number in range(500)]
    fill = insert(ITEMS).values(rows)
    await store.write(lambda connection: connection.execute(fill).rowcount)
    await store.close()


def damage(path: Path) -> None:
    """Write over a page that no start reads."""
    data = bytearray(path.read_bytes())
    last = len(data) - PAGE
    data[last : last + PAGE] = b"\xff" * PAGE
    path.write_bytes(data)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, [SCHEMA])
    try:
        yield store
    finally:
        await store.close()


async def until_unhealthy(store: SqliteStore) -> None:
    async with asyncio.timeout(30):
        while store.healthy:
            await asyncio.to_thread(str)


async def test_damage_after_a_clean_end_is_found_told_and_not_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checking, "AFTER", 0.0)
    await closed_cleanly(path)
    damage(path)
    async with opened(path) as store:
        await until_unhealthy(store)
        assert "is damaged; with agenthost stopped" in caplog.text
        assert not await store.probe()
        with pytest.raises(Unavailable, match="is damaged"):
            await store.write(adding("late"))
    with pytest.raises(ConfigError, match="is damaged"):
        async with opened(path):
            pass


async def test_a_whole_database_stays_in_use(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "AFTER", 0.0)
    await closed_cleanly(path)
    async with opened(path) as store:
        assert store._check is not None
        await store._check
        await store.write(adding("more"))
        assert store.healthy
        assert len(await names(store)) == 501


async def test_a_close_does_not_wait_for_the_look(path: Path) -> None:
    await closed_cleanly(path)
    store = await SqliteStore.open(path, [SCHEMA])
    await store.write(adding("more"))
    async with asyncio.timeout(checking.AFTER / 2):
        await store.close()
    assert store._check is not None
    assert store._check.cancelled()


async def test_a_new_database_and_one_after_a_crash_are_not_looked_through_again(
    path: Path,
) -> None:
    new = await SqliteStore.open(path, [SCHEMA])
    assert new._check is None
    await new._reader.close()
    await new._writer.stop()
    async with opened(path) as again:
        assert again._check is None
