"""What a message costs the database: statements, counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import pytest
from agenthost import Role, Store
from agenthost.testing import ManualClock
from agenthost_records import open_records, register_schema
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.pool import StaticPool

from .nodes import ADA, ASKS, DONE, NOW, RESULTS, Process, words

T = TypeVar("T")


class Counted:
    """A store that writes at once, and keeps the statements it was given."""

    signals = None

    def __init__(self) -> None:
        self.statements: list[str] = []
        engine = create_engine("sqlite://", poolclass=StaticPool)
        for spec in register_schema():
            spec.metadata.create_all(engine)
        event.listen(engine, "before_cursor_execute", self._count)
        self.connection = engine.connect()

    def _count(self, _: object, __: object, statement: str, *___: object) -> None:
        self.statements.append(" ".join(statement.split()[:3]))

    def write(self, fn: Callable[[Connection], T]) -> asyncio.Future[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        done.set_result(fn(self.connection))
        return done

    async def change(self, sql: str, parameters: Mapping[str, Any]) -> Any:
        return self.connection.execute(text(sql), parameters).mappings().all()


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()
    yield counted
    counted.connection.close()
    counted.connection.engine.dispose()


@pytest.fixture
async def process(counted: Counted) -> Process:
    records = open_records(cast("Store", counted), ManualClock(NOW))
    await records.agents.add(ADA)
    return Process(records, await records.journal.enter("main"))


async def test_a_message_that_is_answered_at_once_costs_three_statements(
    counted: Counted, process: Process
) -> None:
    asked = process.step(1, words("go", Role.USER), opened=ADA.id)
    counted.statements.clear()
    await process.records.journal.keep(asked, process.step(2, words("so"), closed=DONE))
    assert counted.statements == [
        "UPDATE sessions SET",
        "INSERT INTO messages",
        "INSERT INTO turns",
    ]


async def test_a_turn_with_a_call_asks_nothing_that_its_rows_do_not_need(
    counted: Counted, process: Process
) -> None:
    await process.ask(1)
    said = ["UPDATE sessions SET", "INSERT INTO messages"]
    counted.statements.clear()
    await process.keep(2, ASKS)
    assert counted.statements == [*said, "INSERT INTO tool_calls"]
    counted.statements.clear()
    await process.records.journal.start_call("t", "call", writer=process.writer)
    assert counted.statements == ["UPDATE tool_calls SET"]
    counted.statements.clear()
    await process.keep(3, RESULTS)
    assert counted.statements == [*said, "UPDATE tool_calls SET"]
    counted.statements.clear()
    await process.keep(4, words("so"), closed=DONE)
    assert counted.statements == [*said, "UPDATE turns SET"]
