"""A step of a turn is written in one piece, or not at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    NOBODY,
    OPERATOR,
    UNTRUSTED,
    Agent,
    AgentMode,
    AgentState,
    Audio,
    CallState,
    Cancelled,
    Citation,
    Conflict,
    Context,
    File,
    Image,
    Json,
    Manifest,
    Message,
    NotFound,
    Outcome,
    Records,
    Role,
    Spent,
    Step,
    Text,
    ToolOutput,
    ToolUse,
    TurnRecord,
    TurnResult,
    TurnState,
    Unavailable,
    Usage,
)
from agenthost.testing import ManualClock
from agenthost_records import open_records, register_schema
from agenthost_records.codec import dump_part, dump_parts, load_part, load_parts
from agenthost_records.tables import messages, sessions, tool_calls, turns, usage
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import Table, select, update
from sqlalchemy.exc import IntegrityError

NOW = 1_767_225_600.0
ADA = Agent(
    id="ada-id",
    name="ada",
    state=AgentState.RUNNING,
    mode=AgentMode.NORMAL,
    session_id="s",
    manifest=Manifest(name="ada"),
    pinned_model=None,
    created_at=NOW,
    updated_at=NOW,
)
USE = ToolUse("call", "kv_set", {"key": "é"})
ASKS = Message(Role.ASSISTANT, (Text("I will."), USE))
SAYS = Message(Role.ASSISTANT, (Text("Done."),))
HEARD = Message(Role.USER, (Text("go"),))
RESULTS = Message(Role.TOOL, (ToolOutput("call", "kv_set", "ok"),))
BY = Context(OPERATOR)
SPENT = Spent(NOW, ADA.id, "s", "t", "p", "m", Usage(10, 5, 1, 2, 3), 7)
RESULT = TurnResult("Done.", Usage(10, 5), 2, 7)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield store
    await store.close()


@pytest.fixture
async def records(store: SqliteStore) -> Records:
    """The rows of one agent with an empty session."""
    records = open_records(store, ManualClock(NOW))
    await records.agents.add(ADA)
    return records


def step(seq: int = 0, message: Message | None = None, **facts: Any) -> Step:
    return Step("s", "t", NOW, seq, message, **facts)


async def rows(store: SqliteStore, table: Table, *columns: str) -> list[Any]:
    names = columns or tuple(table.c.keys())
    found = await store.read(select(*(table.c[name] for name in names)))
    return [tuple(row) for row in found]


async def run_to_its_call(records: Records) -> None:
    await records.journal.keep(step(0, HEARD, opened=ADA.id))
    await records.journal.keep(step(1, ASKS, spent=SPENT))


async def test_a_turn_is_journalled_step_by_step(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    (row,) = await rows(store, tool_calls)
    assert row[:9] == (
        *("t", "call", "s", "kv_set", '{"key":"é"}', "intended"),
        *(NOW, None, None),
    )
    await records.journal.start_call("t", "call")
    assert await rows(store, tool_calls, "state") == [("started",)]
    await records.journal.keep(step(2, RESULTS))
    assert await rows(store, tool_calls, "state", "ended_at") == [("committed", NOW)]
    closed = TurnRecord(TurnState.DONE, RESULT)
    await records.journal.keep(step(3, SAYS, spent=SPENT, closed=closed))
    assert await records.journal.find("t") == replace(
        closed, agent_id=ADA.id, session_id="s"
    )
    session = await records.sessions.get("s")
    assert session.next_seq == 4
    assert (await records.sessions.history(session)).messages == [
        HEARD,
        ASKS,
        RESULTS,
        SAYS,
    ]
    assert await rows(store, messages, "seq", "role", "partial") == [
        (0, "user", 0),
        (1, "assistant", 0),
        (2, "tool", 0),
        (3, "assistant", 0),
    ]
    assert await rows(store, sessions, "message_count") == [(3,)]
    assert len(await rows(store, usage)) == 2


async def test_a_turn_that_broke_off_does_not_know_how_its_calls_ended(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    await records.journal.start_call("t", "call")
    closed = TurnRecord(TurnState.CANCELLED, RESULT, Cancelled("stopped"))
    await records.journal.keep(step(2, SAYS, closed=closed))
    assert await rows(store, tool_calls, "state") == [("unknown",)]
    assert await rows(store, turns, "state", "error", "error_code") == [
        ("cancelled", "stopped", "cancelled")
    ]
    assert (await rows(store, messages, "partial"))[-1] == (1,)


async def test_an_answer_that_ends_the_turn_intends_no_call(
    records: Records, store: SqliteStore
) -> None:
    await records.journal.keep(step(0, HEARD, opened=ADA.id))
    closed = TurnRecord(TurnState.DONE, RESULT)
    await records.journal.keep(step(1, ASKS, spent=SPENT, closed=closed))
    assert await rows(store, tool_calls) == []


async def test_a_failed_turn_goes_on_without_its_error(
    records: Records, store: SqliteStore
) -> None:
    await records.journal.keep(step(0, HEARD, opened=ADA.id))
    failed = TurnRecord(TurnState.FAILED, RESULT, Unavailable("later"))
    await records.journal.keep(step(closed=failed))
    await records.journal.keep(step(reopened=True))
    assert await rows(store, turns, "state", "error", "error_code") == [
        ("running", None, None)
    ]


async def test_a_step_of_a_deleted_session_leaves_no_trace(
    records: Records, store: SqliteStore
) -> None:
    await records.agents.delete(ADA.id)
    with pytest.raises(NotFound, match="session not found: s"):
        await records.journal.keep(step(0, HEARD, opened=ADA.id, spent=SPENT))
    for table in (messages, sessions, turns, usage):
        assert await rows(store, table) == []


async def test_two_writers_of_a_session_do_not_overwrite_each_other(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    with pytest.raises(IntegrityError):
        await records.journal.keep(step(1, SAYS, spent=SPENT))
    session = await records.sessions.get("s")
    assert (await records.sessions.history(session)).messages == [HEARD, ASKS]
    assert len(await rows(store, usage)) == 1


async def test_what_a_dead_process_left_running_is_marked(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    await records.journal.start_call("t", "call")
    assert await records.journal.interrupt(NOBODY) == 1
    assert await rows(store, tool_calls, "state") == [("unknown",)]
    known = await records.journal.find("t")
    assert known is not None
    assert known.state is TurnState.INTERRUPTED
    assert await records.journal.interrupt(NOBODY) == 0
    assert await records.journal.find("nobody") is None


async def test_a_summary_stands_for_what_is_before_it(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    await records.journal.keep(step(2, RESULTS))
    await records.journal.keep(step(3, HEARD))
    summary = Message(Role.USER, (Text("So far."),))
    before = await records.sessions.get("s")
    await records.sessions.compact(before, 3, summary, SPENT)
    session = await records.sessions.get("s")
    assert (session.first_seq, session.next_seq) == (3, 4)
    assert (await records.sessions.history(session)).messages == [summary, HEARD]
    assert await rows(store, sessions, "message_count") == [(2,)]
    assert len(await rows(store, messages)) == 4
    assert len(await rows(store, usage)) == 2


async def test_a_summary_of_what_has_changed_meanwhile_is_refused(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    before = await records.sessions.get("s")
    summary = Message(Role.USER, (Text("So far."),))
    await records.sessions.compact(before, 1, summary, SPENT)
    with pytest.raises(Conflict, match="changed"):
        await records.sessions.compact(before, 2, summary, SPENT)
    assert (await records.sessions.get("s")).first_seq == 1
    assert len(await rows(store, usage)) == 3


async def test_a_turn_that_goes_on_stands_in_its_own_place(
    records: Records, store: SqliteStore
) -> None:
    await records.journal.keep(step(0, HEARD, opened=ADA.id))
    failed = TurnRecord(TurnState.FAILED, RESULT, Unavailable("later"))
    await records.journal.keep(step(1, SAYS, closed=failed))
    other = replace(step(2, HEARD, opened=ADA.id), turn_id="u")
    await records.journal.keep(other, replace(step(3, SAYS), turn_id="u"))
    closed = TurnRecord(TurnState.DONE, RESULT)
    again = step(4, RESULTS, behind=0, closed=closed)
    await records.journal.keep(step(reopened=True), again)
    session = await records.sessions.get("s")
    entries = await records.sessions.entries(session)
    assert [(e.turn_id, e.seq) for e in entries] == [
        ("t", 0),
        ("t", 4),
        ("u", 2),
        ("u", 3),
    ]
    assert await rows(store, sessions, "message_count") == [(3,)]
    said = await records.journal.said("s", "t")
    assert [entry.message for entry in said] == [HEARD, RESULTS]


async def test_what_an_effect_answered_is_written_before_the_next_begins(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    await records.journal.start_call("t", "call")
    assert await records.journal.calls("t") == {"call": (CallState.STARTED, None)}
    output = ToolOutput("call", "kv_set", "kept")
    await records.journal.start_call("t", "other", [Outcome(output, labels=UNTRUSTED)])
    assert await records.journal.calls("t") == {
        "call": (CallState.COMMITTED, Outcome(output, labels=UNTRUSTED))
    }
    unsure = Outcome(output, known=False)
    await records.journal.start_call("t", "other", [unsure])
    assert await records.journal.calls("t") == {"call": (CallState.UNKNOWN, unsure)}


async def test_a_call_whose_end_nobody_saw_is_unknown(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    await records.journal.keep(step(2, RESULTS, unknown=frozenset({"call"})))
    assert await rows(store, tool_calls, "state") == [("unknown",)]


async def test_an_agents_own_session_is_reset_and_not_erased(
    records: Records, store: SqliteStore
) -> None:
    with pytest.raises(Conflict, match="reset"):
        await records.sessions.erase("s")
    fresh = replace(ADA, session_id="fresh")
    await records.agents.switch_session(fresh, "s", keep=False)
    assert await rows(store, sessions, "id") == [("fresh",)]
    with pytest.raises(NotFound):
        await records.agents.switch_session(
            replace(ADA, session_id="late"), "s", keep=False
        )
    assert await rows(store, sessions, "id") == [("fresh",)]
    assert (await records.sessions.of_agent(ADA.id)).id == "fresh"


async def test_a_damaged_message_is_never_served(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    await store.write(lambda c: c.execute(update(messages).values(parts="[]")))
    with pytest.raises(Unavailable, match="damaged"):
        await records.sessions.history(await records.sessions.get("s"))


async def test_a_name_is_taken_once_and_nothing_is_left_of_the_second(
    records: Records, store: SqliteStore
) -> None:
    with pytest.raises(Conflict, match="'ada' exists already"):
        await records.agents.add(
            Agent(
                id="other",
                name="ada",
                state=AgentState.RUNNING,
                mode=AgentMode.NORMAL,
                session_id="other",
                manifest=Manifest(name="ada"),
                pinned_model=None,
                created_at=NOW,
                updated_at=NOW,
            )
        )
    assert await records.agents.load() == [ADA]
    assert await rows(store, sessions, "id") == [("s",)]


async def test_a_deleted_agent_leaves_its_usage_alone(
    records: Records, store: SqliteStore
) -> None:
    await run_to_its_call(records)
    await records.memory.set(BY, ADA.id, "key", 1)
    await records.memory.set(BY, "shared", "shared.key", 2)
    await records.agents.delete(ADA.id)
    assert await records.agents.load() == []
    assert await records.memory.items(ADA.id) == []
    assert await records.memory.items("shared") == [("shared.key", 2)]
    for table in (messages, sessions, turns, tool_calls):
        assert await rows(store, table) == []
    assert (await records.usage.of_agent(ADA.id)).requests == 1


def test_a_call_that_cannot_be_read_is_kept_as_such() -> None:
    bad = ToolUse("call", "kv_set", {}, malformed="no object")
    message = Message(Role.ASSISTANT, (bad, USE))
    assert load_parts(dump_parts(message)) == message.parts


def test_pages_that_words_rest_on_are_kept_and_words_alone_are_written_as_before() -> (
    None
):
    pages = (Citation("https://a.example", "A"), Citation("http://b.example"))
    cited = Message(Role.ASSISTANT, (Text("so", pages), Text("plain")))
    assert load_parts(dump_parts(cited)) == cited.parts
    plain = Message(Role.ASSISTANT, (Text("plain"),))
    assert dump_parts(plain) == '[{"type":"text","text":"plain"}]'


def test_media_and_json_of_a_result_are_kept_as_they_are() -> None:
    media = (
        Image("image/png", "iVBORw0="),
        Audio("audio/wav", "UklGRg=="),
        File("a.csv", "text/csv", "YSxi"),
        File("b.pdf", "application/pdf", uri="https://example.com/b.pdf"),
    )
    values: tuple[Json, ...] = ({"rows": [1, None, "é"]}, [], "", 0, False)
    for value in values:
        output = ToolOutput("1", "look", "seen", media=media, structured=value)
        assert load_parts(dump_parts(Message(Role.TOOL, (output,)))) == (output,)
        assert load_part(dump_part(output)) == output


def test_a_result_in_words_alone_is_written_as_ever() -> None:
    written = dump_part(ToolOutput("1", "look", "seen"))
    assert set(json.loads(written)) == {"type", "id", "name", "text", "is_error"}
