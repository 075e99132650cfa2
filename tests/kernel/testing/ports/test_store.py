"""The contract of stores holds for one in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from agenthost import Row, SchemaSpec, SlowWrite, Unavailable
from agenthost.testing import MemoryStore, OpenStore, StoreContract
from agenthost.testing.ports.memory_store import memory_engine
from agenthost.testing.ports.store import SCHEMA
from sqlalchemy import Connection

from .finding import finds, names_in, names_of

Function = Callable[[Connection], Any]


def opens(kind: type[MemoryStore]) -> Iterator[OpenStore]:
    engine = memory_engine()

    async def opened(schemas: Sequence[SchemaSpec]) -> MemoryStore:
        return kind(schemas, engine)

    yield opened
    engine.dispose()


class TestAStoreInMemory(StoreContract):
    """It keeps every promise."""

    @pytest.fixture
    def opened(self) -> Iterator[OpenStore]:
        yield from opens(MemoryStore)


class GivesNothing(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        return super().write(lambda connection: fn(connection) and None, *also)


class GivesTheLast(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        def last(connection: Connection) -> Any:
            return [each(connection) for each in (fn, *also)][-1]

        return super().write(last)


class WritesTwice(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        def twice(connection: Connection) -> Any:
            fn(connection)
            return fn(connection)

        return super().write(twice, *also)


class StartsWhenAwaited(MemoryStore):
    def write(self, fn: Function, *also: Function) -> Any:
        start = super().write

        class Later:
            def __await__(self) -> Any:
                return start(fn, *also).__await__()

        return Later()


class NewestFirst(MemoryStore):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._waiting: list[tuple[Function, asyncio.Future[Any]]] = []

    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        self._waiting.append((fn, loop.create_future()))
        loop.call_soon(self._begin)
        return self._waiting[-1][1]

    def _begin(self) -> None:
        fn, done = self._waiting.pop()
        done.set_result(super().write(fn).result())


class KeepsWhatRaised(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        raised: list[Exception] = []

        def kept(connection: Connection) -> Any:
            try:
                return fn(connection)
            except ZeroDivisionError as error:
                raised.append(error)

        done = super().write(kept, *also)
        if raised:
            failed = asyncio.get_running_loop().create_future()
            failed.set_exception(raised[0])
            return failed
        return done


class HidesTheError(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        done = super().write(fn, *also)
        if done.exception() is None:
            return done
        hidden = asyncio.get_running_loop().create_future()
        hidden.set_exception(Unavailable("something failed"))
        return hidden


class InTransactionsOfTheirOwn(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        done = super().write(fn)
        for each in also:
            other = super().write(each)
            if other.exception() is not None:
                return other
        return done


class ForgetsWhatRidesAlong(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        return super().write(fn)


class CutInHalf(MemoryStore):
    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        first = super().write(fn).result()
        done = asyncio.get_running_loop().create_future()
        done.get_loop().call_soon(self._end, done, first, also)
        return done

    def _end(
        self, done: asyncio.Future[Any], first: Any, also: Sequence[Function]
    ) -> None:
        if done.cancelled():
            return
        for each in also:
            super().write(each)
        done.set_result(first)


class DieTogether(MemoryStore):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._group: list[asyncio.Future[Any]] = []

    def write(self, fn: Function, *also: Function) -> asyncio.Future[Any]:
        done = asyncio.get_running_loop().create_future()
        self._group.append(done)
        done.get_loop().call_soon(self._begin, done, fn)
        return done

    def _begin(self, done: asyncio.Future[Any], fn: Function) -> None:
        self._group.remove(done)
        if done.cancelled():
            for other in self._group:
                other.cancel()
        else:
            done.set_result(super().write(fn).result())


class GivesDicts(MemoryStore):
    async def read(self, *given: Any) -> Any:
        return [
            dict(zip(row.keys(), row, strict=True)) for row in await self._all(given)
        ]

    async def _all(self, given: Any) -> list[Row]:
        return await super().read(*given)


class StripsText(MemoryStore):
    async def read(self, statement: Any, parameters: Any = None) -> Any:
        given = {n: v[:1_000] for n, v in (parameters or {}).items()}
        return await super().read(statement, given)


class PutsValuesIntoTheText(MemoryStore):
    async def read(self, statement: Any, parameters: Any = None) -> Any:
        given = dict(parameters or {})
        if isinstance(statement, str):
            for name, value in given.items():
                statement = statement.replace(f":{name}", f"'{value}'")
            given = {}
        return await super().read(statement, given)


class ReturnsNothing(MemoryStore):
    async def change(self, sql: str, parameters: Any = None) -> Any:
        await super().change(sql, parameters or {})
        return []


class HasAlwaysAFirst(MemoryStore):
    async def first(self, *given: Any) -> Row:
        return (await self.read(*given))[0]


class ComplainsOfAll(MemoryStore):
    @property
    def healthy(self) -> bool:
        return False


class IsAlwaysSlow(MemoryStore):
    @property
    def slow(self) -> Sequence[SlowWrite]:
        return [SlowWrite("contract.add", 1, 9.0)]


class ForgetsAtTheEnd(MemoryStore):
    async def close(self) -> None:
        SCHEMA.metadata.drop_all(self._engine)
        await super().close()


class NeverCloses(MemoryStore):
    async def close(self) -> None:
        pass


class ClosesOnce(MemoryStore):
    async def close(self) -> None:
        self._refuse_when_closed()
        await super().close()


class StartsAnew(MemoryStore):
    def __init__(self, schemas: Any, engine: Any) -> None:
        SCHEMA.metadata.drop_all(engine)
        super().__init__(schemas, engine)


class MakesTheFirstTableAlone(MemoryStore):
    def __init__(self, schemas: Any, engine: Any) -> None:
        super().__init__(schemas[:1], engine)


class Everywhere:
    """Signals that know neither topics nor who has told."""

    def __init__(self) -> None:
        self._heard: list[Callable[[str], None]] = []

    def tell(self, topic: str, word: str = "") -> None:
        for heard in self._heard:
            heard(word)

    def listen(self, topic: str, heard: Callable[[str], None]) -> None:
        self._heard.append(heard)
        heard("")


class HearsAll(MemoryStore):
    def __init__(self, schemas: Any, engine: Any) -> None:
        super().__init__(schemas, engine)
        self.signals = engine.__dict__.setdefault("everywhere", Everywhere())


HERE = TestAStoreInMemory()
BREACHES: tuple[tuple[type[MemoryStore], Any], ...] = (
    (GivesNothing, HERE.test_a_write_gives_what_its_function_returns),
    (WritesTwice, HERE.test_a_write_gives_what_its_function_returns),
    (StartsWhenAwaited, HERE.test_writes_happen_in_order_without_being_awaited),
    (NewestFirst, HERE.test_writes_happen_in_order_without_being_awaited),
    (WritesTwice, HERE.test_writes_of_many_callers_lose_and_double_nothing),
    (KeepsWhatRaised, HERE.test_what_raises_rolls_back_its_own_work_alone),
    (HidesTheError, HERE.test_what_raises_rolls_back_its_own_work_alone),
    (HidesTheError, HERE.test_a_broken_rule_of_a_table_reaches_the_caller),
    (GivesTheLast, HERE.test_functions_ride_along_in_the_same_transaction),
    (ForgetsWhatRidesAlong, HERE.test_functions_ride_along_in_the_same_transaction),
    (InTransactionsOfTheirOwn, HERE.test_what_rides_along_and_raises_undoes_it_all),
    (GivesDicts, HERE.test_a_row_is_read_by_name_and_by_position),
    (StripsText, HERE.test_values_are_never_part_of_a_statement),
    (PutsValuesIntoTheText, HERE.test_a_constant_text_is_read_as_a_statement_is),
    (ReturnsNothing, HERE.test_a_constant_text_is_written_and_gives_what_it_returns),
    (HasAlwaysAFirst, HERE.test_the_first_row_or_none),
    (CutInHalf, HERE.test_a_cancelled_write_happens_wholly_or_not_at_all),
    (DieTogether, HERE.test_a_caller_that_leaves_harms_nobody),
    (ComplainsOfAll, HERE.test_a_store_that_works_says_so),
    (IsAlwaysSlow, HERE.test_a_store_that_works_says_so),
    (ForgetsAtTheEnd, HERE.test_closing_finishes_what_was_written),
    (NeverCloses, HERE.test_a_closed_store_refuses_what_is_asked),
    (ClosesOnce, HERE.test_a_closed_store_refuses_what_is_asked),
    (HearsAll, HERE.test_stores_of_one_database_hear_each_other),
    (StartsAnew, HERE.test_a_table_that_comes_later_is_made),
    (MakesTheFirstTableAlone, HERE.test_a_table_that_comes_later_is_made),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_a_broken_store_is_found(broken: type[MemoryStore], test: Any) -> None:
    for opened in opens(broken):
        if "opened" in inspect.signature(test).parameters:
            await finds(test, opened)
        else:
            await finds(test, await opened([SCHEMA]))


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(StoreContract)
