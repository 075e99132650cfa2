"""What every backend of the port STORE promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

import pytest
import pytest_asyncio
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    insert,
    select,
)
from sqlalchemy.exc import IntegrityError

from ...errors import Unavailable
from ...plugins.specs import SchemaSpec
from ...ports.store import Store

OpenStore = Callable[[Sequence[SchemaSpec]], Awaitable[Store]]
Write = Callable[[Connection], int]
MANY = 200
NAMES = ("", "x" * 100_000, "ключ \U0001f511", "a\nb", "'; DROP TABLE contract_items")

METADATA = MetaData()
ITEMS = Table(
    "contract_items",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)
SCHEMA = SchemaSpec("contract", METADATA)
LATER_METADATA = MetaData()
LATER_ITEMS = Table(
    "later_items", LATER_METADATA, Column("id", Integer, primary_key=True)
)
LATER = SchemaSpec("later", LATER_METADATA)
OF_LATER = select(LATER_ITEMS.c.id)
INSERT = insert(ITEMS)
ALL = select(ITEMS.c.id, ITEMS.c.name).order_by(ITEMS.c.id)
NAMED = select(ITEMS.c.id, ITEMS.c.name).where(ITEMS.c.name == bindparam("name"))


def adding(name: str) -> Write:
    """Give the write that adds a row, and returns how many there are then."""
    return partial(add, name=name)


def add(connection: Connection, name: str) -> int:
    """Add a row."""
    connection.execute(INSERT, {"name": name})
    return len(connection.execute(ALL).all())


def break_off(connection: Connection) -> int:
    """Add a row and raise."""
    add(connection, "of what raised")
    raise ZeroDivisionError


async def names(store: Store) -> list[str]:
    """Name what is there, in the order it was added."""
    return [row["name"] for row in await store.read(ALL)]


class StoreContract:
    """A store keeps every promise of the port.

    A subclass overrides the fixture ``opened``: a coroutine function that opens the
    store with schemas. What it opens the second time, after the first one was closed,
    is what a next process finds.

    Example:
        ::

            class TestPostgres(StoreContract):
                @pytest.fixture
                def opened(self, database: str) -> OpenStore:
                    return partial(open_postgres, database)
    """

    @pytest.fixture
    def opened(self) -> OpenStore:
        """What opens the store."""
        pytest.fail("override the fixture `opened` with what opens the store")

    @pytest_asyncio.fixture
    async def store(self, opened: OpenStore) -> AsyncIterator[Store]:
        """The store of a new database, with one table."""
        store = await opened([SCHEMA])
        yield store
        await store.close()

    async def test_a_write_gives_what_its_function_returns(self, store: Store) -> None:
        """Once it is committed, a read sees it."""
        assert await store.write(adding("a")) == 1
        assert await store.write(adding("b")) == 2
        assert await names(store) == ["a", "b"]

    async def test_writes_happen_in_order_without_being_awaited(
        self, store: Store
    ) -> None:
        """Each starts at once; the last one's end is the end of all."""
        written = [store.write(adding(str(number))) for number in range(MANY)]
        await written[-1]
        assert await names(store) == [str(number) for number in range(MANY)]
        assert await asyncio.gather(*written) == [n + 1 for n in range(MANY)]

    async def test_writes_of_many_callers_lose_and_double_nothing(
        self, store: Store
    ) -> None:
        """They stand for themselves: some raise, the others are kept."""

        async def caller(number: int) -> int:
            try:
                return await store.write(adding(str(number // 2)))
            except IntegrityError:
                return 0

        async with asyncio.timeout(60):
            gave = await asyncio.gather(*map(caller, range(MANY)))
        assert sorted(filter(None, gave)) == [n + 1 for n in range(MANY // 2)]
        assert sorted(map(int, await names(store))) == [*range(MANY // 2)]

    async def test_what_raises_rolls_back_its_own_work_alone(
        self, store: Store
    ) -> None:
        """The caller gets the exception as it is."""
        before = store.write(adding("before"))
        broken = store.write(break_off)
        after = store.write(adding("after"))
        with pytest.raises(ZeroDivisionError):
            await broken
        await asyncio.gather(before, after)
        assert await names(store) == ["before", "after"]
        assert store.healthy

    async def test_a_broken_rule_of_a_table_reaches_the_caller(
        self, store: Store
    ) -> None:
        """It is SQLAlchemy's own error, so that it can be told from a fault."""
        await store.write(adding("a"))
        with pytest.raises(IntegrityError):
            await store.write(adding("a"))
        assert await names(store) == ["a"]

    async def test_functions_ride_along_in_the_same_transaction(
        self, store: Store
    ) -> None:
        """They run in order after the first, whose result is given."""
        assert await store.write(adding("a"), adding("b"), adding("c")) == 1
        assert await names(store) == ["a", "b", "c"]

    async def test_what_rides_along_and_raises_undoes_it_all(
        self, store: Store
    ) -> None:
        """All is on disk or nothing is."""
        with pytest.raises(ZeroDivisionError):
            await store.write(adding("a"), break_off, adding("b"))
        with pytest.raises(ZeroDivisionError):
            await store.write(break_off, adding("c"))
        assert await names(store) == []

    async def test_a_row_is_read_by_name_and_by_position(self, store: Store) -> None:
        """It has a length, an order and the names of its columns."""
        await store.write(adding("a"))
        (row,) = await store.read(ALL)
        assert (row["id"], row["name"]) == (row[0], row[1]) == (1, "a")
        assert ([*row], [*row.keys()], len(row)) == ([1, "a"], ["id", "name"], 2)

    async def test_values_are_never_part_of_a_statement(self, store: Store) -> None:
        """They come back as they were given, and are found by themselves alone."""
        for name in NAMES:
            await store.write(adding(name))
        for number, name in enumerate(NAMES):
            found = [(*row,) for row in await store.read(NAMED, {"name": name})]
            assert found == [(number + 1, name)]

    async def test_a_constant_text_is_read_as_a_statement_is(
        self, store: Store
    ) -> None:
        """Rows by name and by place; values go where their names stand."""
        await store.write(adding("a"), adding("b"))
        rows = await store.read("SELECT id, name FROM contract_items ORDER BY id")
        assert [(row["id"], row[1]) for row in rows] == [(1, "a"), (2, "b")]
        named = "SELECT id FROM contract_items WHERE name = :name"
        row = await store.first(named, {"name": "b"})
        assert row is not None
        assert row["id"] == 2
        assert await store.first(named, {"name": "' OR '1' = '1"}) is None

    async def test_a_constant_text_is_written_and_gives_what_it_returns(
        self, store: Store
    ) -> None:
        """One that breaks a rule changes nothing."""
        put = "INSERT INTO contract_items (name) VALUES (:name)"
        assert await store.change(put, {"name": "a"}) == []
        rows = await store.change(f"{put} RETURNING id", {"name": "b"})
        assert [row["id"] for row in rows] == [2]
        with pytest.raises(Exception, match=r"(?i)unique"):
            await store.change(put, {"name": "a"})
        assert await names(store) == ["a", "b"]

    async def test_the_first_row_or_none(self, store: Store) -> None:
        """A statement without rows has no first."""
        assert await store.first(ALL) is None
        await store.write(adding("a"), adding("b"))
        row = await store.first(ALL)
        assert row is not None
        assert row["name"] == "a"
        assert await store.first(NAMED, {"name": "nobody"}) is None

    async def test_a_cancelled_write_happens_wholly_or_not_at_all(
        self, store: Store
    ) -> None:
        """It holds up nobody who comes after."""
        written = store.write(adding("a"), adding("b"))
        written.cancel()
        assert await store.write(adding("c")) in {1, 3}
        assert await names(store) in (["c"], ["a", "b", "c"])

    async def test_a_caller_that_leaves_harms_nobody(self, store: Store) -> None:
        """Its own write may still happen; those beside it do."""

        async def caller(number: int) -> None:
            await store.write(adding(str(number)))

        tasks = [asyncio.ensure_future(caller(number)) for number in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.write(adding("last"))
        assert {*await names(store)} >= {"last", *map(str, range(1, 20, 2))}

    async def test_a_store_that_works_says_so(self, store: Store) -> None:
        """Before the first write and after it; no write was slow."""
        for name in ("a", "b"):
            assert store.healthy
            assert await store.probe()
            await store.write(adding(name))
        assert [*store.slow] == []

    async def test_closing_finishes_what_was_written(self, opened: OpenStore) -> None:
        """What a next process finds is all of it."""
        store = await opened([SCHEMA])
        written = [store.write(adding(str(number))) for number in range(MANY)]
        await store.close()
        assert await asyncio.gather(*written) == [n + 1 for n in range(MANY)]
        again = await opened([SCHEMA])
        found = await names(again)
        await again.close()
        assert found == [str(number) for number in range(MANY)]

    async def test_a_closed_store_refuses_what_is_asked(
        self, opened: OpenStore
    ) -> None:
        """Unavailable; closing it again is fine, and it is no longer healthy."""
        store = await opened([SCHEMA])
        for _ in range(2):
            await store.close()
        for ask in (partial(store.write, adding("a")), partial(store.read, ALL)):
            with pytest.raises(Unavailable):
                await ask()
        assert not store.healthy

    async def test_stores_of_one_database_hear_each_other(
        self, opened: OpenStore
    ) -> None:
        """Every other one hears what one tells, by topic; it does not hear itself."""
        one = await opened([SCHEMA])
        if one.signals is None:
            await one.close()
            pytest.skip("one process alone has the database")
        other = await opened([SCHEMA])
        assert other.signals is not None
        mine: asyncio.Queue[str] = asyncio.Queue()
        heard: asyncio.Queue[str] = asyncio.Queue()
        one.signals.listen("topic", mine.put_nowait)
        other.signals.listen("topic", heard.put_nowait)
        async with asyncio.timeout(60):
            # From its first call on it hears all.
            assert (await mine.get(), await heard.get()) == ("", "")
            one.signals.tell("another topic", "x")
            one.signals.tell("topic", "a word")
            assert await heard.get() == "a word"
            other.signals.tell("topic", "back")
            assert await mine.get() == "back"
        await one.close()
        await other.close()

    async def test_a_table_that_comes_later_is_made(self, opened: OpenStore) -> None:
        """The rows of an earlier start stay."""
        store = await opened([SCHEMA])
        await store.write(adding("a"))
        await store.close()
        again = await opened([SCHEMA, LATER])
        await again.write(adding("b"))
        found = await names(again), await again.read(OF_LATER)
        await again.close()
        assert found == (["a", "b"], [])
