"""Lines for sessions: a place is let go of however the store fails meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from agenthost import Store, Unavailable, Writer
from agenthost_records import lines, register_schema
from agenthost_records.lines import Lines
from agenthost_storage.sqlite import SqliteStore

A = Writer("a", 1)
PATIENCE = 30.0


class Told:
    """Signals that nobody else hears."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.heard: Callable[[str], None] = print

    def tell(self, topic: str, word: str = "") -> None:
        self.told.append((topic, word))

    def listen(self, _: str, heard: Callable[[str], None]) -> None:
        self.heard = heard


class Failing:
    """A store that may lose what it was asked to write, or the word that it has."""

    fails = ""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.signals = Told()
        self.read, self.first = store.read, store.first
        self.failed = asyncio.Event()

    def write(self, fn: Callable[..., Any]) -> asyncio.Future[Any]:
        if self.fails:
            self.failed.set()
            lost: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            lost.set_exception(Unavailable("lost"))
            if self.fails == "late":
                self._store.write(fn)
            return lost
        return self._store.write(fn)

    async def standing(self) -> list[str]:
        rows = await self.read("SELECT work_id FROM session_holders ORDER BY place")
        return [row["work_id"] for row in rows]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Failing]:
    opened = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield Failing(opened)
    await opened.close()


@pytest.fixture
async def line(store: Failing, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lines]:
    monkeypatch.setattr(lines, "AGAIN", 0.01)
    line: Any = Lines(store)  # type: ignore[arg-type]
    yield line
    await line.stop()


async def test_a_place_is_let_go_of_once_the_store_takes_it(
    store: Failing, line: Lines
) -> None:
    place = line.up("s", "1", A)
    await place.reached()
    store.fails = "all"
    place.leave()
    async with asyncio.timeout(PATIENCE):
        await store.failed.wait()
    assert await store.standing() == ["1"]
    store.fails = ""
    async with asyncio.timeout(PATIENCE):
        await line.up("s", "2", A).reached()
    assert await store.standing() == ["2"]


async def test_a_place_that_nobody_knows_to_be_taken_is_let_go_of(
    store: Failing, line: Lines
) -> None:
    """The commit came through, the word of it did not."""
    store.fails = "late"
    place = line.up("s", "1", A)
    with pytest.raises(Unavailable):
        await place.reached()
    store.fails = ""
    async with asyncio.timeout(PATIENCE):
        while await store.standing() != ["1"]:
            pass
    place.leave()
    async with asyncio.timeout(PATIENCE):
        await line.up("s", "2", A).reached()
    assert await store.standing() == ["2"]


async def test_others_are_told_where_somebody_waits_and_only_there(
    store: Failing, line: Lines
) -> None:
    first, _ = line.up("s", "1", A), line.up("s", "2", A)
    alone = line.up("t", "3", A)
    await first.reached()
    await alone.reached()
    first.leave()
    alone.leave()
    async with asyncio.timeout(PATIENCE):
        while await store.standing() != ["2"] or not store.signals.told:
            pass
    assert store.signals.told == [(lines.TOPIC, "s")]


async def test_a_word_that_may_have_been_missed_wakes_all(
    store: Failing, line: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LOOK", 10 * PATIENCE)
    other = Lines(store)  # type: ignore[arg-type]
    first, second = line.up("s", "1", A), other.up("s", "2", A)
    await first.reached()
    waiting = asyncio.create_task(second.reached())
    await asyncio.wait([waiting], timeout=0.05)
    first.leave()
    async with asyncio.timeout(PATIENCE):
        while await store.standing() != ["2"]:
            pass
        assert not waiting.done()
        store.signals.heard("")
        await waiting
    await other.stop()


async def test_the_end_waits_for_what_is_let_go_of(store: Failing, line: Lines) -> None:
    place = line.up("s", "1", A)
    await place.reached()
    place.leave()
    await line.stop()
    assert await store.standing() == []


async def test_the_end_waits_for_no_store_that_fails(
    store: Failing, line: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = line.up("s", "1", A)
    await place.reached()
    store.fails = "all"
    monkeypatch.setattr(lines, "LAST", 0.05)
    place.leave()
    async with asyncio.timeout(PATIENCE):
        await line.stop()
    store.fails = ""
    assert await store.standing() == ["1"]
