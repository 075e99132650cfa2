"""A running turn belongs to one start of one node; nobody else writes for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    NOBODY,
    Cancelled,
    NotFound,
    Outcome,
    Session,
    Spent,
    Superseded,
    ToolOutput,
    TurnRecord,
    TurnState,
    Usage,
)
from agenthost_records import late, register_schema
from agenthost_records.tables import nodes, sessions, tool_calls, turns
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import select

from .nodes import (
    ADA,
    ASKS,
    CUT_OFF,
    DONE,
    NOW,
    RESULT,
    RESULTS,
    WAITS,
    Process,
    begin,
    boot,
    everything,
    words,
)

SPENT = Spent(NOW, ADA.id, "s", "t", "p", "m", Usage(10, 5, 1, 2, 3), 7)
OWN = Session("own", ADA.id, NOW, ephemeral=True)
FLEETING: dict[str, Any] = {"session_id": "own", "turn_id": "own", "own": OWN}

Act = Callable[[Process], Awaitable[object]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield store
    await store.close()


@pytest.fixture
async def first(store: SqliteStore) -> Process:
    """The first start of node a, which has an agent with an empty session."""
    process = await boot(store, "a")
    await process.records.agents.add(ADA)
    return process


async def read(store: SqliteStore, *columns: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await store.read(select(*columns))]


async def fleeting_begun(process: Process) -> None:
    """Begin a turn whose session goes with it, of which nothing is on disk."""
    await process.ask(**FLEETING)


async def fleeting_call_begun(process: Process) -> None:
    """Bring one to where it is on disk."""
    await fleeting_begun(process)
    await process.keep(1, ASKS, **FLEETING)


async def call_begun(process: Process) -> None:
    """Bring a turn to where its call runs."""
    await process.ask()
    await process.keep(1, ASKS)
    await process.records.journal.start_call("t", "call", writer=process.writer)


# Epochs.


async def test_each_start_of_a_node_is_an_epoch_of_its_own(store: SqliteStore) -> None:
    started = [(await begin(store, node)).writer for node in ("a", "a", "b", "a")]
    assert [(w.node, w.epoch) for w in started] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
        ("a", 3),
    ]
    assert sorted(await read(store, *nodes.c)) == [("a", 3, NOW), ("b", 1, NOW)]


async def test_two_starts_at_once_are_two_epochs(store: SqliteStore) -> None:
    started = await asyncio.gather(*(begin(store, "a") for _ in range(20)))
    assert sorted(each.writer.epoch for each in started) == [*range(1, 21)]


async def test_a_turns_row_says_who_runs_it_and_who_ended_it(
    store: SqliteStore, first: Process
) -> None:
    who = (turns.c.state, turns.c.node, turns.c.epoch)
    await first.ask()
    assert await read(store, *who) == [("running", "a", 1)]
    other = await boot(store, "b")
    await other.keep(reopened=True)
    assert await read(store, *who) == [("running", "b", 1)]
    await other.keep(1, words("so"), closed=DONE)
    assert await read(store, *who) == [("done", "b", 1)]


# Starts.


async def test_the_start_of_one_node_leaves_the_turns_of_others_alone(
    store: SqliteStore, first: Process
) -> None:
    await call_begun(first)
    await fleeting_call_begun(first)
    open_ = await first.records.sessions.open(ADA.id, ephemeral=True)
    before = await everything(store)
    other = await begin(store, "b")
    assert await other.records.journal.interrupt(other.writer) == 0
    after = await everything(store)
    assert after.pop("nodes") != before.pop("nodes")
    assert after == before
    await first.keep(2, RESULTS)
    await first.keep(3, words("so"), closed=DONE)
    await first.keep(2, words("so"), closed=DONE, **FLEETING)
    assert (await first.records.sessions.get(open_.id)).ephemeral


async def test_a_start_marks_what_earlier_ones_of_its_node_left(
    store: SqliteStore, first: Process
) -> None:
    await call_begun(first)
    await fleeting_call_begun(first)
    left = await first.records.sessions.open(ADA.id, ephemeral=True)
    other = await boot(store, "b")
    await other.ask(2, turn_id="theirs")
    again = await begin(store, "a")
    assert await again.records.journal.interrupt(again.writer) == 1
    assert sorted(await read(store, turns.c.id, turns.c.state, turns.c.epoch)) == [
        ("t", "interrupted", 2),
        ("theirs", "running", 1),
    ]
    assert await read(store, tool_calls.c.state) == [("unknown",)]
    for gone in (left.id, "own"):
        with pytest.raises(NotFound):
            await again.records.sessions.get(gone)
    assert await again.records.journal.interrupt(again.writer) == 0


async def test_a_start_marks_no_turn_that_it_opened_itself(
    store: SqliteStore, first: Process
) -> None:
    await first.ask()
    await fleeting_call_begun(first)
    open_ = await first.records.sessions.open(ADA.id, ephemeral=True)
    assert await first.records.journal.interrupt(first.writer) == 0
    assert await first.state() is TurnState.RUNNING
    for kept in ("own", open_.id):
        assert (await first.records.sessions.get(kept)).ephemeral


async def test_a_fork_under_way_outlives_the_start_of_another_node(
    store: SqliteStore, first: Process
) -> None:
    await first.ask()
    await first.keep(1, words("so"), closed=DONE)
    source = await first.records.sessions.get("s")
    forked = await first.records.sessions.fork(source)
    made_by = select(sessions.c.node).where(sessions.c.id == forked.id)
    assert [tuple(row) for row in await store.read(made_by)] == [("a",)]


@pytest.mark.parametrize("node", ["a", "b"])
async def test_any_start_marks_the_turns_of_a_database_that_knew_no_nodes(
    store: SqliteStore, first: Process, node: str
) -> None:
    await Process(first.records, NOBODY).ask()
    process = await boot(store, node)
    assert await process.state() is TurnState.INTERRUPTED
    await process.keep(reopened=True)
    await process.keep(1, words("so"), closed=DONE)
    assert await process.state() is TurnState.DONE


# What is refused.


async def says(process: Process) -> None:
    await process.keep(2, RESULTS, spent=SPENT)


async def ends(process: Process) -> None:
    await process.keep(2, words("so"), spent=SPENT, closed=DONE)


async def breaks_off(process: Process) -> None:
    await process.keep(closed=CUT_OFF)


async def waits(process: Process) -> None:
    await process.keep(2, RESULTS, unknown=frozenset({"call"}), closed=WAITS)


async def begins_an_effect(process: Process) -> None:
    kept = [Outcome(ToolOutput("call", "kv_set", "kept"))]
    await process.records.journal.start_call("t", "call", kept, process.writer)


async def ends_what_is_not_kept(process: Process) -> None:
    await process.keep(1, words("so"), spent=SPENT, closed=DONE, **FLEETING)


async def goes_on(process: Process) -> None:
    await process.keep(reopened=True)


async def goes_on_at_once(process: Process) -> None:
    again = process.step(reopened=True)
    await process.records.journal.keep(again, process.step(2, words("so"), closed=DONE))


async def opens(process: Process) -> None:
    await process.ask(2, turn_id="new", spent=SPENT)


CONTINUE: list[Act] = [says, ends, breaks_off, waits, begins_an_effect]
BEGIN: list[Act] = [goes_on, goes_on_at_once, opens]


@pytest.mark.parametrize("begins", [fleeting_begun, fleeting_call_begun])
@pytest.mark.parametrize("act", [*CONTINUE, *BEGIN, ends_what_is_not_kept])
async def test_a_late_step_of_an_earlier_start_is_refused_and_writes_nothing(
    store: SqliteStore, first: Process, act: Act, begins: Act
) -> None:
    await call_begun(first)
    await begins(first)
    again = await boot(store, "a")
    before = await everything(store)
    with pytest.raises(Superseded, match="another process has started as node 'a'"):
        await act(first)
    assert await everything(store) == before
    await again.keep(reopened=True)
    before = await everything(store)
    with pytest.raises(Superseded, match="another process has started as node 'a'"):
        await act(first)
    assert await everything(store) == before


@pytest.mark.parametrize("act", CONTINUE)
async def test_a_turn_that_another_node_took_over_refuses_the_first(
    store: SqliteStore, first: Process, act: Act
) -> None:
    await call_begun(first)
    other = await boot(store, "b")
    await other.keep(reopened=True)
    before = await everything(store)
    with pytest.raises(Superseded, match="belongs to node 'b'"):
        await act(first)
    assert await everything(store) == before
    await other.keep(2, RESULTS)
    await other.keep(3, words("so"), closed=DONE)
    before = await everything(store)
    with pytest.raises(Superseded):
        await act(first)
    assert await everything(store) == before


async def test_a_node_may_take_back_what_another_took(
    store: SqliteStore, first: Process
) -> None:
    await first.ask()
    other = await boot(store, "b")
    await other.keep(reopened=True)
    await first.keep(reopened=True)
    with pytest.raises(Superseded):
        await ends(other)
    await ends(first)
    assert await first.state() is TurnState.DONE


async def test_a_later_start_closes_what_an_earlier_one_opened(
    store: SqliteStore, first: Process
) -> None:
    await first.ask()
    again = await begin(store, "a")
    await again.keep(1, words("so"), closed=DONE)
    assert await again.state() is TurnState.DONE


async def test_a_turn_that_waits_is_anybodys_and_ends_once(
    store: SqliteStore, first: Process
) -> None:
    await call_begun(first)
    await waits(first)
    other = await boot(store, "b")
    assert await other.state() is TurnState.WAITING
    stopped = TurnRecord(TurnState.CANCELLED, RESULT, Cancelled("stopped"))
    await other.keep(closed=stopped)
    before = await everything(store)
    with pytest.raises(Superseded):
        await first.keep(closed=DONE)
    assert await everything(store) == before


@pytest.mark.parametrize("begins", [fleeting_begun, fleeting_call_begun])
async def test_what_was_deleted_is_told_apart_from_what_others_have(
    first: Process, begins: Act
) -> None:
    await call_begun(first)
    await begins(first)
    await first.records.agents.delete(ADA.id)
    for act in (says, ends, breaks_off, ends_what_is_not_kept, goes_on):
        with pytest.raises(NotFound, match="session not found"):
            await act(first)
    with pytest.raises(NotFound, match="turn not found: t"):
        await begins_an_effect(first)


@pytest.mark.parametrize("state", [TurnState.DONE, TurnState.CANCELLED])
async def test_a_turn_that_has_ended_neither_goes_on_nor_ends_again(
    store: SqliteStore, first: Process, state: TurnState
) -> None:
    await call_begun(first)
    await first.keep(2, words("so"), closed=TurnRecord(state, RESULT))
    other = await boot(store, "b")
    before = await everything(store)
    for process in (first, other):
        for act in (*CONTINUE, goes_on, goes_on_at_once):
            with pytest.raises(Superseded, match="has ended"):
                await act(process)
    assert await everything(store) == before


# What could not be written at the time.


async def test_what_is_late_is_dropped_once_another_has_the_turn(
    store: SqliteStore, first: Process, caplog: pytest.LogCaptureFixture
) -> None:
    await first.ask()
    first.records.journal.keep_late(first.step(closed=CUT_OFF))
    other = await boot(store, "b")
    await other.keep(reopened=True)
    before = await everything(store)
    await first.records.journal.close_late("s")
    assert await everything(store) == before
    assert "turn t is not closed here: the turn belongs to node 'b'" in caplog.text
    caplog.clear()
    await first.records.journal.close_late("s")
    assert caplog.text == ""
    await first.records.journal.stop()


async def test_what_is_late_is_not_tried_for_ever(
    store: SqliteStore, first: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late, "TRY_AFTER", 0.0)
    await first.ask()
    await boot(store, "a")
    before = asyncio.all_tasks()
    first.records.journal.keep_late(first.step(closed=CUT_OFF))
    [trying] = asyncio.all_tasks() - before
    await asyncio.wait_for(trying, 30)
    assert await first.state() is TurnState.INTERRUPTED
