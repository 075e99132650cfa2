"""Sessions as rows: opened by a key, archived, searched, forked, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    NOBODY,
    Agent,
    AgentMode,
    AgentState,
    Cancelled,
    Conflict,
    InvalidInput,
    Manifest,
    Message,
    NotFound,
    Records,
    Role,
    Session,
    SessionFilter,
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
from agenthost_records.retention import KEPT, Retention
from agenthost_records.tables import messages, sessions, tool_calls, turns, usage
from agenthost_records.texts import marks, texts
from agenthost_storage.sqlite import SqliteStore
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Table, insert, select

from .test_retention import HurriedClock

NOW = 1_767_225_600.0
DAY = 86_400.0
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
BOB = replace(ADA, id="bob-id", name="bob", session_id="b")
RESULT = TurnResult("Done.", Usage(10, 5), 1, 7)
DONE = TurnRecord(TurnState.DONE, RESULT)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield store
    await store.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def records(store: SqliteStore, clock: ManualClock) -> Records:
    records = open_records(store, clock)
    await records.agents.add(ADA)
    await records.agents.add(BOB)
    return records


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def answer(text: str) -> Message:
    return Message(Role.ASSISTANT, (Text(text),))


async def say(records: Records, session_id: str, *texts: str, turn: str = "") -> None:
    """Have turns of one question and one answer each."""
    for text in texts:
        seq = (await records.sessions.get(session_id)).next_seq
        turn_id = turn or f"{session_id}:{seq}"
        asked = Step(session_id, turn_id, NOW, seq, user(text), opened=ADA.id)
        said = answer(f"re {text}")
        told = Step(session_id, turn_id, NOW, seq + 1, said, closed=DONE)
        await records.journal.keep(asked, told)


async def said(records: Records, session_id: str) -> list[str]:
    session = await records.sessions.get(session_id)
    return [
        message.text for message in (await records.sessions.history(session)).messages
    ]


async def rows(store: SqliteStore, table: Table, *columns: str) -> list[Any]:
    names = columns or tuple(table.c.keys())
    found = await store.read(select(*(table.c[name] for name in names)))
    return [tuple(row) for row in found]


async def found(records: Records, text: str, **wanted: Any) -> list[str]:
    listed = await records.sessions.list(SessionFilter(text=text, **wanted))
    return [session.id for session in listed]


# Opening.


async def test_a_session_opened_twice_at_once_is_the_same(records: Records) -> None:
    opened = await asyncio.gather(
        *(records.sessions.open(ADA.id, "channel:telegram:1") for _ in range(20))
    )
    assert len({session.id for session in opened}) == 1
    again = await records.sessions.open(ADA.id, "channel:telegram:1")
    assert again.id == opened[0].id


async def test_a_key_is_its_agents_own(records: Records) -> None:
    hers = await records.sessions.open(ADA.id, "key")
    his = await records.sessions.open(BOB.id, "key")
    assert hers.id != his.id
    with pytest.raises(NotFound):
        await records.sessions.get(his.id, ADA.id)
    assert (await records.sessions.get(his.id, BOB.id)).key == "key"


async def test_without_a_key_every_session_is_new(records: Records) -> None:
    first, second = [await records.sessions.open(ADA.id) for _ in range(2)]
    assert first.id != second.id


@pytest.mark.parametrize("key", ["", "k" * 257, "turn:mine"])
async def test_a_key_has_its_form(records: Records, key: str) -> None:
    with pytest.raises(InvalidInput, match="key: must"):
        await records.sessions.open(ADA.id, key)


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_what_is_to_stay_does_not_end_as_what_is_ephemeral(
    records: Records, *, ephemeral: bool
) -> None:
    await records.sessions.open(ADA.id, "key", ephemeral=ephemeral)
    with pytest.raises(Conflict, match="use another key"):
        await records.sessions.open(ADA.id, "key", ephemeral=not ephemeral)


async def test_nobody_opens_a_session_of_no_agent(records: Records) -> None:
    with pytest.raises(NotFound, match="agent not found"):
        await records.sessions.open("nobody", "key")


async def test_what_the_archive_holds_has_let_go_of_its_key(records: Records) -> None:
    old = await records.sessions.open(ADA.id, "key")
    await records.sessions.archive(old.id)
    new = await records.sessions.open(ADA.id, "key")
    assert new.id != old.id
    with pytest.raises(Conflict, match="another session has its key"):
        await records.sessions.archive(old.id, on=False)
    await records.sessions.archive(new.id)
    await records.sessions.archive(old.id, on=False)
    assert (await records.sessions.open(ADA.id, "key")).id == old.id


# Titles and the archive.


async def test_a_title_is_the_first_message_until_it_is_renamed(
    records: Records,
) -> None:
    await say(records, "s", "  What\n is\tthis? ", "second")
    assert (await records.sessions.get("s")).title == "What is this?"
    await records.sessions.rename("s", "  Plans \0 for May ")
    assert (await records.sessions.get("s")).title == "Plans for May"
    await say(records, "s", "third")
    assert (await records.sessions.get("s")).title == "Plans for May"


async def test_a_name_given_before_the_first_message_stays(records: Records) -> None:
    await records.sessions.rename("s", "Plans")
    await say(records, "s", "first")
    assert (await records.sessions.get("s")).title == "Plans"


async def test_a_long_first_message_makes_a_short_title(records: Records) -> None:
    await say(records, "s", "word " * 10_000)
    title = (await records.sessions.get("s")).title
    assert len(title) <= 80
    assert title.endswith("\N{HORIZONTAL ELLIPSIS}")


async def test_a_title_without_a_letter_is_refused(records: Records) -> None:
    with pytest.raises(InvalidInput, match="title: must not be empty"):
        await records.sessions.rename("s", " \n\x07 ")
    with pytest.raises(NotFound):
        await records.sessions.rename("nowhere", "x")


async def test_an_agents_own_session_is_neither_archived_nor_erased(
    records: Records,
) -> None:
    with pytest.raises(Conflict, match="activate another first"):
        await records.sessions.archive("s")
    with pytest.raises(Conflict, match="activate another first"):
        await records.sessions.erase("s")


async def test_an_agent_goes_on_in_another_session_and_keeps_the_old(
    records: Records,
) -> None:
    await say(records, "s", "one")
    await records.agents.switch_session(replace(ADA, session_id="t"), "s", keep=True)
    old, new = await records.sessions.get("s"), await records.sessions.get("t")
    assert old.archived_at is not None
    assert new.archived_at is None
    assert await said(records, "s") == ["one", "re one"]
    # And back: what is empty is not kept.
    await records.agents.switch_session(ADA, "t", keep=True)
    assert (await records.sessions.get("s")).archived_at is None
    with pytest.raises(NotFound):
        await records.sessions.get("t")


async def test_an_agent_does_not_go_on_in_a_session_of_another(
    records: Records, store: SqliteStore
) -> None:
    await say(records, "s", "one")
    await say(records, "b", "his")
    with pytest.raises(NotFound, match="session not found: b"):
        await records.agents.switch_session(
            replace(ADA, session_id="b"), "s", keep=True
        )
    # It all came to nothing: neither half was written.
    assert (await records.sessions.of_agent(ADA.id)).id == "s"
    assert (await records.sessions.get("s")).archived_at is None


# Ephemeral sessions.


async def test_an_ephemeral_session_is_in_no_list(records: Records) -> None:
    made = await records.sessions.open(ADA.id, "run:1", ephemeral=True)
    await say(records, made.id, "hidden words")
    assert made.id not in [each.id for each in await records.sessions.list()]
    assert await found(records, "hidden") == []


async def test_what_has_no_key_is_gone_with_the_next_start(records: Records) -> None:
    keyless = await records.sessions.open(ADA.id, ephemeral=True)
    keyed = await records.sessions.open(ADA.id, "run:1", ephemeral=True)
    await say(records, keyless.id, "one")
    await say(records, keyed.id, "two")
    await records.journal.interrupt(NOBODY)
    with pytest.raises(NotFound):
        await records.sessions.get(keyless.id)
    assert await said(records, keyed.id) == ["two", "re two"]


async def test_an_ephemeral_session_ends_a_day_after_it_was_last_used(
    records: Records, store: SqliteStore
) -> None:
    kept = await records.sessions.open(ADA.id, "kept")
    done = await records.sessions.open(ADA.id, "done", ephemeral=True)
    busy = await records.sessions.open(ADA.id, "busy", ephemeral=True)
    await say(records, done.id, "one")
    asked = Step(busy.id, "running", NOW, 0, user("wait"), opened=ADA.id)
    await records.journal.keep(asked)
    await Retention(store, HurriedClock(NOW + DAY - 60)).once()
    assert await said(records, done.id) == ["one", "re one"]
    await Retention(store, HurriedClock(NOW + DAY + 60)).once()
    with pytest.raises(NotFound):
        await records.sessions.get(done.id)
    for session in (kept, busy):
        assert (await records.sessions.get(session.id)).ephemeral is not None


async def test_what_waits_for_calls_of_the_callers_ends_after_an_hour(
    records: Records, store: SqliteStore
) -> None:
    for id_, key in (("left", "turn:left:left"), ("asked", "turn:asked")):
        own = Session(id_, ADA.id, NOW, key=key, ephemeral=True)
        asked = Step(id_, id_, NOW, 0, user("?"), opened=ADA.id, own=own)
        told = Step(id_, id_, NOW, 1, answer("!"), own=own, closed=DONE)
        await records.journal.keep(asked, told)
    await Retention(store, HurriedClock(NOW + 3_599)).once()
    assert await said(records, "left") == ["?", "!"]
    await Retention(store, HurriedClock(NOW + 3_601)).once()
    with pytest.raises(NotFound):
        await records.sessions.get("left")
    assert await said(records, "asked") == ["?", "!"]


async def test_a_turns_own_session_goes_with_its_last_step(
    records: Records, store: SqliteStore
) -> None:
    own = Session("own", ADA.id, NOW, ephemeral=True)
    spent = Spent(NOW, ADA.id, "own", "own", "p", "m", Usage(1, 1), 1)
    asked = Step("own", "own", NOW, 0, user("?"), opened=ADA.id, own=own)
    told = Step("own", "own", NOW, 1, answer("!"), own=own, spent=spent, closed=DONE)
    asks = Message(Role.ASSISTANT, (ToolUse("c", "kv_set", {}),))
    calls = Step("own", "own", NOW, 1, asks, own=own)
    for earlier, written in (((asked,), 0), ((asked, calls), 2)):
        for step in earlier:
            await records.journal.keep(step)
        assert len(await rows(store, messages)) == written
        await records.journal.keep(told)
    await records.journal.keep(asked, told)
    for table in (messages, turns, tool_calls):
        assert await rows(store, table) == []
    assert sorted(await rows(store, sessions, "id")) == [("b",), ("s",)]
    assert len(await rows(store, usage)) == 3


async def test_what_a_turn_of_its_own_took_is_booked_when_the_disk_takes_it(
    records: Records, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Session("own", ADA.id, NOW, ephemeral=True)
    spent = Spent(NOW, ADA.id, "own", "own", "p", "m", Usage(1, 1), 1)
    await records.journal.keep(
        Step("own", "own", NOW, 0, user("?"), opened=ADA.id, own=own)
    )
    told = Step("own", "own", NOW, 1, answer("!"), own=own, spent=spent, closed=DONE)
    with monkeypatch.context() as full:
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failed.set_exception(Unavailable("the disk is full"))
        full.setattr(store, "write", lambda *_: failed)
        with pytest.raises(Unavailable):
            await records.journal.keep(told)
    await records.journal.keep(told)
    assert len(await rows(store, usage)) == 1
    assert await rows(store, turns) == []


async def test_a_session_of_its_own_is_not_begun_for_a_deleted_agent(
    records: Records, store: SqliteStore
) -> None:
    await records.agents.delete(ADA.id)
    own = Session("own", ADA.id, NOW, key="turn:own", ephemeral=True)
    asked = Step("own", "own", NOW, 0, user("?"), opened=ADA.id, own=own)
    with pytest.raises(NotFound):
        await records.journal.keep(asked)
    assert await rows(store, sessions, "id") == [("b",)]


# Lists and search.


async def test_a_list_is_filtered_ordered_and_paged(
    records: Records, clock: ManualClock
) -> None:
    made = []
    for number in range(5):
        await clock.advance(1)
        made.append((await records.sessions.open(ADA.id, f"k{number}")).id)
    await records.sessions.archive(made[2])

    async def ids(**wanted: Any) -> list[str]:
        listed = await records.sessions.list(SessionFilter(**wanted))
        return [session.id for session in listed]

    assert await ids() == ["b", "s", *made]
    assert await ids(agent_id=ADA.id) == ["s", *made]
    assert await ids(agent_id=ADA.id, archived=True) == [made[2]]
    assert made[2] not in await ids(archived=False)
    assert await ids(agent_id=ADA.id, newest=True) == [*reversed(made), "s"]
    assert await ids(agent_id=ADA.id, limit=2) == ["s", made[0]]
    assert await ids(agent_id=ADA.id, limit=2, after=made[0]) == made[1:3]
    assert await ids(newest=True, limit=2, after=made[4]) == [made[3], made[2]]
    assert await ids(after=made[4]) == []
    assert await ids(after="nowhere") == []


async def test_words_are_found_in_messages_and_titles(records: Records) -> None:
    beside = await records.sessions.open(ADA.id)
    await say(records, "s", "the quick brown fox")
    await say(records, beside.id, "a lazy dog")
    await records.sessions.rename(beside.id, "Animals of GROẞ")
    await records.sessions.archive(beside.id)
    assert await found(records, "QUICK fox") == ["s"]
    assert await found(records, "quick dog") == []
    assert await found(records, "lazy") == [beside.id]
    assert await found(records, "animals gross") == [beside.id]
    assert await found(records, "re lazy") == [beside.id]
    assert await found(records, "lazy", archived=False) == []
    assert await found(records, "lazy", agent_id=BOB.id) == []


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("100% sure_thing a/b", "100% sure_thing a/b"),
        ("ÄPFEL und Straße", "äpfel STRASSE"),
        ("日本語のテスト", "語のテ"),
        ("cafe\N{COMBINING ACUTE ACCENT}", "café"),
        ('a "quoted" NEAR(x) * AND -y:', '"quoted" NEAR(x) * AND -y:'),
        ("it's; drop table", "it's; drop"),
    ],
)
async def test_any_words_are_found_as_they_were_written(
    records: Records, written: str, asked: str
) -> None:
    await say(records, "s", written)
    await say(records, "b", "100 sure thing ab apfel quoted")
    assert await found(records, asked) == ["s"]


@pytest.mark.parametrize("asked", ["%", "_", "\\", "/", "''", '"', "[", "*"])
async def test_no_sign_is_a_wildcard(records: Records, asked: str) -> None:
    await say(records, "s", "plain")
    assert await found(records, asked) == []


@given(asked=st.text(max_size=60))
@settings(max_examples=25, deadline=None)
def test_no_query_is_an_error(asked: str, tmp_path_factory: Any) -> None:
    async def ask() -> None:
        path = tmp_path_factory.mktemp("db") / "agenthost.db"
        store = await SqliteStore.open(path, register_schema())
        try:
            records = open_records(store, ManualClock(NOW))
            await records.agents.add(ADA)
            await say(records, "s", f"x{asked}y")
            if asked.split():
                assert await found(records, asked) in (["s"], [])
        finally:
            await store.close()

    asyncio.run(ask())


async def test_json_and_tool_results_are_not_searched(records: Records) -> None:
    use = ToolUse("c", "kv_set", {"key": "argument"})
    asks = Message(Role.ASSISTANT, (Text("I will."), use))
    results = Message(Role.TOOL, (ToolOutput("c", "kv_set", "outcome"),))
    await records.journal.keep(
        Step("s", "t", NOW, 0, user("go"), opened=ADA.id), Step("s", "t", NOW, 1, asks)
    )
    await records.journal.keep(Step("s", "t", NOW, 2, results))
    await records.journal.keep(Step("s", "t", NOW, 3, answer("ok"), closed=DONE))
    for asked in ("tool_use", "argument", "outcome", "opaque"):
        assert await found(records, asked) == []
    assert await found(records, "I will.") == ["s"]


async def test_a_turn_writes_nothing_for_the_search(
    records: Records, store: SqliteStore
) -> None:
    await say(records, "s", "one", "two")
    assert await rows(store, texts) == []
    assert await found(records, "two") == ["s"]
    assert [row[0] for row in await rows(store, texts, "text")] == [
        "one",
        "re one",
        "two",
        "re two",
    ]


async def test_what_is_deleted_is_not_found_and_its_numbers_are_given_again(
    records: Records, store: SqliteStore
) -> None:
    beside = await records.sessions.open(ADA.id)
    await say(records, "s", "stays")
    await say(records, beside.id, "goes", "goes too")
    assert await found(records, "goes") == [beside.id]
    await records.sessions.erase(beside.id)
    assert await found(records, "goes") == []
    assert len(await rows(store, texts)) == 2
    # The rows of the next messages have the numbers of those that went.
    await say(records, "s", "comes")
    assert await found(records, "comes") == ["s"]
    assert await rows(store, marks) == [(4,)]


async def test_what_was_said_anew_is_found_as_it_stands(records: Records) -> None:
    failed = TurnRecord(TurnState.FAILED, RESULT, Cancelled("later"))
    await records.journal.keep(Step("s", "t", NOW, 0, user("go"), opened=ADA.id))
    await records.journal.keep(Step("s", "t", NOW, 1, answer("broken"), closed=failed))
    assert await found(records, "broken") == ["s"]
    await records.journal.keep(Step("s", "t", NOW, reopened=True))
    await records.journal.keep(Step("s", "t", NOW, 2, answer("whole"), closed=DONE))
    assert await found(records, "broken") == []
    assert await found(records, "whole") == ["s"]


async def test_many_searches_at_once_write_each_word_once(
    records: Records, store: SqliteStore
) -> None:
    await say(records, "s", *(f"word {number}" for number in range(250)))
    results = await asyncio.gather(*(found(records, "word 249") for _ in range(8)))
    assert results == [["s"]] * 8
    assert len(await rows(store, texts)) == 500


# Forks.


async def test_a_fork_goes_its_own_way(records: Records) -> None:
    await say(records, "s", "one", "two", "three")
    fork = await records.sessions.fork(await records.sessions.get("s"), 2)
    assert (fork.parent_id, fork.at_message, fork.next_seq) == ("s", 2, 2)
    assert await records.sessions.get(fork.id) == fork
    assert await said(records, fork.id) == ["one", "re one"]
    await say(records, fork.id, "other")
    assert await said(records, fork.id) == ["one", "re one", "other", "re other"]
    assert await said(records, "s") == [
        *("one", "re one"),
        *("two", "re two"),
        *("three", "re three"),
    ]
    assert fork.title == "one"
    listed = {each.id: each for each in await records.sessions.list()}
    assert listed[fork.id].message_count == 4


async def test_a_fork_of_all_and_of_nothing(records: Records) -> None:
    await say(records, "s", "one")
    session = await records.sessions.get("s")
    whole = await records.sessions.fork(session)
    empty = await records.sessions.fork(session, 0)
    assert await said(records, whole.id) == ["one", "re one"]
    assert await said(records, empty.id) == []
    await say(records, empty.id, "uno")
    assert (await records.sessions.get(empty.id)).title == "uno"
    with pytest.raises(NotFound, match="message not found: 7"):
        await records.sessions.fork(session, 7)


async def test_a_fork_shows_turns_and_effects_after_its_original_has_gone(
    records: Records, store: SqliteStore
) -> None:
    use = ToolUse("c", "kv_set", {})
    asks = Message(Role.ASSISTANT, (Text("I will."), use))
    results = Message(Role.TOOL, (ToolOutput("c", "kv_set", "ok"),))
    beside = await records.sessions.open(ADA.id)
    step = Step(beside.id, "t", NOW)
    await records.journal.keep(
        replace(step, message=user("go"), opened=ADA.id),
        replace(step, seq=1, message=asks),
    )
    await records.journal.keep(replace(step, seq=2, message=results))
    await records.journal.keep(replace(step, seq=3, message=answer("ok"), closed=DONE))
    fork = await records.sessions.fork(await records.sessions.get(beside.id))
    second = await records.sessions.fork(await records.sessions.get(fork.id))
    await records.sessions.erase(beside.id)
    await records.sessions.erase(second.id)
    shown = await records.sessions.turns(fork.id)
    assert shown["t"].result == RESULT
    session = await records.sessions.get(fork.id)
    history = await records.sessions.history(session)
    assert [m.role for m in history.messages][1:3] == [Role.ASSISTANT, Role.TOOL]
    assert len(await rows(store, tool_calls)) == 1
    await records.sessions.erase(fork.id)
    for table in (tool_calls, turns, messages):
        assert await rows(store, table) == []


async def test_an_original_keeps_its_turns_when_its_fork_is_deleted(
    records: Records,
) -> None:
    await say(records, "s", "one")
    fork = await records.sessions.fork(await records.sessions.get("s"))
    await say(records, fork.id, "two")
    await records.sessions.erase(fork.id)
    assert [turn.state for turn in (await records.sessions.turns("s")).values()] == [
        TurnState.DONE
    ]


async def test_what_was_cut_off_is_not_gone_on_with_in_a_fork(
    records: Records,
) -> None:
    failed = TurnRecord(TurnState.FAILED, RESULT, Cancelled("later"))
    await records.journal.keep(Step("s", "t", NOW, 0, user("go"), opened=ADA.id))
    await records.journal.keep(Step("s", "t", NOW, 1, answer("half"), closed=failed))
    fork = await records.sessions.fork(await records.sessions.get("s"))
    assert await records.sessions.turns(fork.id) == {}
    assert await said(records, fork.id) == ["go", "half"]


async def summarise(records: Records, first_seq: int) -> Session:
    spent = Spent(NOW, ADA.id, "s", "c", "p", "m", Usage(1, 1), 1)
    session = await records.sessions.get("s")
    await records.sessions.compact(session, first_seq, user("so far"), spent)
    return await records.sessions.get("s")


async def test_a_fork_begins_with_the_summary_or_with_what_it_stands_for(
    records: Records,
) -> None:
    await say(records, "s", "one", "two", "three")
    session = await summarise(records, 4)
    behind = await records.sessions.fork(session, 5)
    assert await said(records, behind.id) == ["so far", "three"]
    assert behind.message_count == 2
    before = await records.sessions.fork(session, 2)
    assert await said(records, before.id) == ["one", "re one"]


@given(
    count=st.integers(1, 6),
    cuts=st.lists(st.integers(0, 30), min_size=1, max_size=6),
    late=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_forks_of_forks_hold_what_stood_before_their_message(
    count: int, cuts: Sequence[int], late: bool, tmp_path_factory: Any
) -> None:
    async def run() -> None:
        path = tmp_path_factory.mktemp("db") / "agenthost.db"
        store = await SqliteStore.open(path, register_schema())
        try:
            records = open_records(store, ManualClock(NOW))
            await records.agents.add(ADA)
            await say(records, "s", *(f"s{number}" for number in range(count)))
            if late:
                # A turn that went on in its own place, in front of later ones.
                seq = 2 * count
                step = Step("s", "late", NOW, seq, answer("late"), behind=0)
                await records.journal.keep(replace(step, opened=ADA.id, closed=DONE))
            known = {"s": await said(records, "s")}
            for number, cut in enumerate(cuts):
                source = [*known][cut % len(known)]
                session = await records.sessions.get(source)
                entries = await records.sessions.entries(session)
                place = cut % len(entries) if entries else 0
                before = entries[place].seq if entries else None
                fork = await records.sessions.fork(session, before)
                expected = known[source][:place]
                assert await said(records, fork.id) == expected
                await say(records, fork.id, f"f{number}")
                known[fork.id] = [*expected, f"f{number}", f"re f{number}"]
            for session_id, texts_ in known.items():
                assert await said(records, session_id) == texts_
                session = await records.sessions.get(session_id)
                numbers = [e.seq for e in await records.sessions.entries(session)]
                assert sorted(numbers) == [*range(session.next_seq)]
                assert session.message_count == len(texts_)
        finally:
            await store.close()

    asyncio.run(run())


async def test_a_long_session_is_forked_a_part_at_a_time(
    records: Records, store: SqliteStore
) -> None:
    many = [
        {
            "session_id": "s",
            "seq": seq,
            "turn_id": None,
            "role": "user",
            "parts": '[{"type":"text","text":"%s"}]' % ("x" * 2_000),
            "digest": "",
            "partial": 0,
            "created_at": NOW,
        }
        for seq in range(1_000)
    ]
    await store.write(lambda each: each.execute(insert(messages), many).rowcount)
    session = replace(await records.sessions.get("s"), next_seq=1_000)
    fork = await records.sessions.fork(session)
    assert fork.next_seq == 1_000
    assert (await records.sessions.get(fork.id)).ephemeral is False
    assert [row[0] for row in await rows(store, messages, "session_id")].count(
        fork.id
    ) == 1_000


async def test_a_fork_of_what_is_deleted_meanwhile_leaves_nothing(
    records: Records, store: SqliteStore
) -> None:
    beside = await records.sessions.open(ADA.id)
    await say(records, beside.id, *(f"word {number}" for number in range(200)))
    session = await records.sessions.get(beside.id)
    forking = asyncio.create_task(records.sessions.fork(session))
    await asyncio.sleep(0)
    await records.sessions.erase(beside.id)
    with pytest.raises((Conflict, NotFound)):
        await forking
    await store.write(lambda _: None)
    assert sorted(await rows(store, sessions, "id")) == [("b",), ("s",)]
    assert await rows(store, messages) == []


async def test_old_messages_of_a_fork_do_not_hide_younger_turns(
    records: Records, store: SqliteStore
) -> None:
    await say(records, "s", "old")
    young = NOW + KEPT - 10
    asked = Step("s", "young", young, 2, user("young"), opened=ADA.id)
    told = Step("s", "young", young, 3, answer("ok"), closed=DONE)
    await records.journal.keep(asked, told)
    await records.sessions.fork(await records.sessions.get("s"), 2)
    await Retention(store, HurriedClock(NOW + KEPT + 10)).once()
    assert await rows(store, turns, "id") == [("young",)]
    await Retention(store, HurriedClock(young + KEPT + 10)).once()
    assert await rows(store, turns, "id") == []


# Deleting.


async def test_an_agent_goes_with_all_its_sessions(
    records: Records, store: SqliteStore
) -> None:
    await say(records, "b", "his")
    await say(records, "s", "one")
    fork = await records.sessions.fork(await records.sessions.get("s"))
    await records.sessions.archive(fork.id)
    own = await records.sessions.open(ADA.id, "run", ephemeral=True)
    await say(records, own.id, "two")
    assert sorted(await found(records, "one")) == sorted(["s", fork.id])
    await records.agents.delete(ADA.id)
    assert await rows(store, sessions, "id") == [("b",)]
    assert {row[0] for row in await rows(store, messages, "session_id")} == {"b"}
    assert {row[0] for row in await rows(store, texts, "session_id")} == {"b"}
    assert await rows(store, turns, "id") == [("b:0",)]
