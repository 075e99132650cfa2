"""What a caller may rely on when it writes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from agenthost import PluginError, StorageFull, Unavailable
from agenthost_storage.sqlite import SqliteStore, writer
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from .rows import ITEMS, SCHEMA, adding, names, put


async def test_a_write_gives_what_its_function_returns(store: SqliteStore) -> None:
    assert await store.write(lambda _: 42) == 42


async def test_a_write_starts_without_being_awaited(store: SqliteStore) -> None:
    store.write(adding("early"))
    await store.write(lambda _: None)
    assert await names(store) == ["early"]


async def test_a_read_sees_what_was_just_committed(store: SqliteStore) -> None:
    for number in range(50):
        await store.write(adding(str(number)))
        assert len(await names(store)) == number + 1


class Gate:
    """A write that holds the writer until it is opened, so that others gather."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, connection: Connection) -> None:
        self.entered.set()
        assert self.opened.wait(10)

    async def closed_on(self, store: SqliteStore) -> asyncio.Future[None]:
        future = store.write(self)
        assert await asyncio.to_thread(self.entered.wait, 10)
        return future


def fail(connection: Connection) -> None:
    put(connection, "never")
    raise ValueError("no")


async def test_a_function_that_raises_rolls_back_alone(store: SqliteStore) -> None:
    gate = Gate()
    await gate.closed_on(store)
    before = [store.write(adding(f"before {n}")) for n in range(3)]
    bad = store.write(fail)
    after = [store.write(adding(f"after {n}")) for n in range(3)]
    gate.opened.set()
    with pytest.raises(ValueError, match="no"):
        await bad
    await asyncio.gather(*before, *after)
    assert await names(store) == [
        *(f"before {n}" for n in range(3)),
        *(f"after {n}" for n in range(3)),
    ]
    assert store.healthy


async def test_a_group_commits_once(store: SqliteStore, path: Path) -> None:
    gate = Gate()
    held = await gate.closed_on(store)
    seen: list[int] = []

    def look(connection: Connection) -> None:
        with sqlite3.connect(path) as other:
            seen.append(other.execute("SELECT count(*) FROM items").fetchone()[0])
        other.close()

    writes = [store.write(adding("first")), store.write(look)]
    gate.opened.set()
    await asyncio.gather(held, *writes)
    assert seen == [0]


async def test_a_broken_constraint_reaches_the_caller_as_it_is(
    store: SqliteStore,
) -> None:
    await store.write(adding("one"))
    with pytest.raises(IntegrityError):
        await store.write(adding("one"))
    assert store.healthy


async def test_a_cancelled_write_that_waits_is_skipped(store: SqliteStore) -> None:
    gate = Gate()
    held = await gate.closed_on(store)
    left = store.write(adding("left"))
    stays = store.write(adding("stays"))
    left.cancel()
    gate.opened.set()
    await asyncio.gather(held, stays)
    assert await names(store) == ["stays"]


async def test_a_cancelled_caller_of_a_running_write_harms_nobody(
    store: SqliteStore,
) -> None:
    gate = Gate()
    held = await gate.closed_on(store)
    held.cancel()
    gate.opened.set()
    await store.write(adding("next"))
    assert await names(store) == ["next"]


@pytest.mark.parametrize("error", [SystemExit, StopIteration, KeyboardInterrupt])
async def test_no_exception_ends_the_writer(
    store: SqliteStore, error: type[BaseException]
) -> None:
    def leave(connection: Connection) -> None:
        raise error

    with pytest.raises(PluginError, match=error.__name__):
        await store.write(leave)
    await store.write(adding("still here"))
    assert await names(store) == ["still here"]


async def test_a_full_queue_is_refused(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_LIMIT", 2)
    gate = Gate()
    held = await gate.closed_on(store)
    second = store.write(adding("second"))
    with pytest.raises(Unavailable, match="too many writes"):
        store.write(adding("third"))
    gate.opened.set()
    await asyncio.gather(held, second)
    await store.write(adding("room again"))


async def test_closing_finishes_what_was_written(path: Path) -> None:
    store = await SqliteStore.open(path, [SCHEMA])
    writes = [store.write(adding(str(number))) for number in range(300)]
    await store.close()
    await store.close()
    assert all(write.done() for write in writes)
    with pytest.raises(Unavailable, match="closed"):
        store.write(adding("late"))
    with pytest.raises(Unavailable, match="closed"):
        await names(store)
    again = await SqliteStore.open(path, [SCHEMA])
    assert len(await names(again)) == 300
    await again.close()


async def test_no_room_is_told_and_the_next_write_recovers(store: SqliteStore) -> None:
    def limit(connection: Connection, pages: int) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    await store.write(lambda connection: limit(connection, 1))
    with pytest.raises(StorageFull, match="disk is full"):
        await store.write(adding("x" * 100_000))
    assert not store.healthy
    assert await names(store) == []
    await store.write(lambda connection: limit(connection, 1_000_000))
    await store.write(adding("small"))
    assert store.healthy
    assert await names(store) == ["small"]


async def test_many_callers_lose_and_double_nothing(store: SqliteStore) -> None:
    async def caller(number: int) -> None:
        for count in range(20):
            await store.write(adding(f"{number}-{count}"))

    await asyncio.gather(*(caller(number) for number in range(32)))
    found = await names(store)
    assert sorted(found) == sorted(f"{n}-{c}" for n in range(32) for c in range(20))
    assert [row["id"] for row in await store.read(ITEMS.select())] == list(
        range(1, 641)
    )


async def test_functions_ride_along_in_the_same_commit(
    store: SqliteStore,
) -> None:
    def change(connection: Connection) -> int:
        put(connection, "change")
        return 42

    def told(connection: Connection) -> str:
        rows = connection.execute(select(ITEMS.c.name)).scalars().all()
        put(connection, f"audit: {', '.join(rows)}")
        return "nobody asks for this"

    assert await store.write(change, told, adding("third")) == 42
    assert await names(store) == ["change", "audit: change", "third"]
    # Another connection never sees one without the others.
    store.write(adding("a"), adding("b"))
    seen = await names(store)
    assert ("a" in seen) == ("b" in seen)


@pytest.mark.parametrize("crowd", [False, True])
async def test_what_rides_along_and_raises_undoes_it_all(
    store: SqliteStore, crowd: bool
) -> None:
    gate = Gate()
    held = await gate.closed_on(store)
    others = [store.write(adding(f"other {n}")) for n in range(3 * crowd)]
    lost = store.write(adding("change"), adding("audit"), fail)
    others += [store.write(adding(f"later {n}")) for n in range(3 * crowd)]
    gate.opened.set()
    with pytest.raises(ValueError, match="no"):
        await lost
    await asyncio.gather(held, *others)
    assert not {"change", "audit", "never"} & set(await names(store))
    assert len(await names(store)) == len(others)


async def test_nothing_rides_along_with_what_raises(store: SqliteStore) -> None:
    ran: list[str] = []
    with pytest.raises(ValueError, match="no"):
        await store.write(fail, lambda _: ran.append("also"))
    assert ran == []
