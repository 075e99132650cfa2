"""What is older than 90 days goes; no total falls, nothing that is needed is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agenthost import Records, Role, Slot, Spent, TurnState, Usage
from agenthost.testing import Daemons, ManualClock
from agenthost_records import open_records, register_schema, register_service
from agenthost_records.forgetting import CALLS
from agenthost_records.retention import KEPT, Retention
from agenthost_records.rollup import BATCH, usage_days
from agenthost_records.tables import messages, tool_calls, turns, usage
from agenthost_records.usage import record
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import Connection, Table, insert, select

NOW = 1_767_225_600.0 + 12 * 3_600
DAY = 86_400.0
OLD, YOUNG = NOW - KEPT - 1, NOW - KEPT + 1


class HurriedClock(ManualClock):
    """Nobody waits: whoever sleeps moves the time."""

    async def sleep(self, seconds: float) -> None:
        await self.advance(seconds)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield store
    await store.close()


@pytest.fixture
def records(store: SqliteStore) -> Records:
    return open_records(store, ManualClock(NOW))


async def retain(store: SqliteStore, now: float = NOW) -> None:
    await Retention(store, HurriedClock(now)).once()


async def fill(
    store: SqliteStore, table: Table, rows: Sequence[dict[str, Any]]
) -> None:
    filled = insert(table).values(list(rows))
    await store.write(lambda connection: connection.execute(filled).rowcount)


async def ids(store: SqliteStore, column: Any) -> list[Any]:
    return sorted(row[0] for row in await store.read(select(column)))


def spent(at: float, number: int = 0) -> Spent:
    chance = random.Random(number)
    return Spent(
        at=at,
        agent_id=chance.choice(["a", "b", ""]),
        session_id="s",
        turn_id="t",
        provider=chance.choice(["p", "q"]),
        model=chance.choice(["m", "n"]),
        usage=Usage(*(chance.randrange(1_000) for _ in range(5))),
        cost_micro_usd=chance.randrange(10**9),
    )


async def book(store: SqliteStore, rows: Sequence[Spent]) -> None:
    def write(connection: Connection) -> None:
        for row in rows:
            record(connection, row)

    await store.write(write)


async def totals(records: Records) -> list[Any]:
    days = [slot async for slot in in_days(records)]
    return [
        await records.usage.by_model(),
        [await records.usage.of_agent(agent) for agent in ("a", "b", "", "nobody")],
        await records.usage.period(0.0),
        days,
    ]


async def in_days(records: Records) -> AsyncIterator[list[Slot]]:
    for agent in ("", "a"):
        yield list(await records.usage.since(0.0, DAY, agent))


async def test_no_total_changes_when_old_usage_is_summed_up(
    store: SqliteStore, records: Records
) -> None:
    chance = random.Random(7)
    ages = [chance.uniform(0, 200 * DAY) for _ in range(1_500)]
    await book(store, [spent(NOW - age, n) for n, age in enumerate(ages)])
    before = await totals(records)
    for later in range(0, 120, 30):
        await retain(store, NOW + later * DAY)
        assert await totals(records) == before
    assert await ids(store, usage.c.id) == []
    kept = await store.read(select(usage_days))
    assert sum(row["requests"] for row in kept) == len(ages)


async def test_usage_of_the_last_90_days_stays_as_it_is(
    store: SqliteStore, records: Records
) -> None:
    await book(store, [spent(OLD, 1), spent(YOUNG, 2), spent(NOW, 3)])
    await retain(store)
    rows = await store.read(select(usage.c.at).order_by(usage.c.at))
    assert [row["at"] for row in rows] == [YOUNG, NOW]
    month = await records.usage.period(NOW - 30 * DAY)
    assert (month.requests, month.oldest) == (1, NOW)


async def test_no_write_takes_out_more_than_it_may(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await book(store, [spent(OLD - n) for n in range(BATCH * 2 + 1)])
    calls = [call("t", str(n), "committed") for n in range(CALLS * 2 + 1)]
    await fill(store, turns, [turn("t", OLD)])
    await fill(store, messages, [said("t", OLD)])
    await fill(store, tool_calls, calls)
    changed: list[int] = []
    write = store.write

    def watched(fn: Any) -> Any:
        def run(connection: Connection) -> Any:
            before = rows_of(connection)
            result = fn(connection)
            changed.append(before - rows_of(connection))
            return result

        return write(run)

    monkeypatch.setattr(store, "write", watched)
    await retain(store)
    assert changed == [500, 500, 1, 250, 250, 2]


def rows_of(connection: Connection) -> int:
    tables = (usage, turns, tool_calls)
    return sum(len(connection.execute(select(table)).all()) for table in tables)


def turn(name: str, at: float, state: TurnState = TurnState.DONE) -> dict[str, Any]:
    return {
        "id": name,
        "session_id": "s",
        "agent_id": "a",
        "state": state.value,
        "response": "said",
        "iterations": 1,
        "input_tokens": 1,
        "output_tokens": 1,
        "cost_micro_usd": 1,
        "started_at": at,
        "ended_at": at,
    }


SEQUENCE = iter(range(1_000_000))


def said(turn_id: str | None, at: float) -> dict[str, Any]:
    return {
        "session_id": "s",
        "seq": next(SEQUENCE),
        "turn_id": turn_id,
        "role": Role.USER.value,
        "parts": "[]",
        "digest": "",
        "partial": 0,
        "created_at": at,
    }


def call(turn_id: str, name: str, state: str) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "call_id": name,
        "session_id": "s",
        "tool": "kv_set",
        "arguments": "{}",
        "state": state,
        "created_at": OLD,
    }


async def test_old_turns_and_their_calls_go_and_what_was_said_stays(
    store: SqliteStore,
) -> None:
    kept = {
        "interrupted": TurnState.INTERRUPTED,
        "running": TurnState.RUNNING,
        "unknown": TurnState.CANCELLED,
    }
    gone = {
        "done": TurnState.DONE,
        "failed": TurnState.FAILED,
        "stopped": TurnState.CANCELLED,
    }
    await fill(store, turns, [turn(n, OLD, s) for n, s in {**kept, **gone}.items()])
    await fill(store, turns, [turn("young", YOUNG)])
    await fill(store, messages, [said(n, OLD) for n in (*gone, *kept, None)])
    await fill(store, messages, [said("young", YOUNG)])
    states = dict.fromkeys([*gone, "young", "interrupted"], "committed")
    states["unknown"] = "unknown"
    await fill(store, tool_calls, [call(n, "c", s) for n, s in states.items()])
    await retain(store)
    assert await ids(store, turns.c.id) == sorted([*kept, "young"])
    called = await ids(store, tool_calls.c.turn_id)
    assert called == ["interrupted", "unknown", "young"]
    assert len(await ids(store, messages.c.id)) == 8


async def test_what_was_looked_at_is_not_looked_at_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store, turns, [turn(str(n), OLD) for n in range(450)])
    await fill(store, messages, [said(str(n), OLD) for n in range(450)])
    await retain(store)
    assert await ids(store, turns.c.id) == []
    writes: list[Any] = []
    write = store.write

    def watched(fn: Any) -> Any:
        writes.append(fn)
        return write(fn)

    monkeypatch.setattr(store, "write", watched)
    await retain(store)
    assert len(writes) == 1  # the look for old usage


async def test_an_old_turn_of_a_daemon_goes_within_the_hour(daemons: Daemons) -> None:
    clock = ManualClock(NOW)
    daemon = await daemons.start(clock=clock)
    agent = await daemon.agent()
    await agent.ask("hello")
    count = select(turns.c.id)
    assert len(await daemon.daemon.store.read(count)) == 1
    before = (await daemon.http.get("/api/usage/by-model")).json()
    await clock.advance(91 * DAY)
    async with asyncio.timeout(20):
        while await daemon.daemon.store.read(count):
            await clock.advance(3_600)
    assert (await daemon.http.get("/api/usage/by-model")).json() == before
    texts = [m["content"] for m in (await agent.session())["messages"]]
    assert texts == ["hello", "You said: hello"]
    assert await agent.ask("again") == "You said: again"


def test_register_service_offers_the_retention() -> None:
    [service] = register_service()
    assert service.name == "retention"
