"""What every backend of RECORDS promises of conversations, as tests to inherit."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from agenthost_chat.chat import (
    Audio,
    File,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolOutput,
    ToolUse,
)

from ....context import UNTRUSTED
from ....errors import Cancelled, Conflict, InvalidInput, NotFound
from ....ports.records import Records, TurnState
from ...clock import START, ManualClock
from .forks import ForkedSessions
from .lists import ListedSessions
from .scenes import (
    ADA,
    BOB,
    DONE,
    HERE,
    KNOWN,
    SPENT,
    OpenRecords,
    ended,
    is_gone,
    listed,
    said,
    say,
    start_again,
    step,
    summarise,
    user,
)
from .views import ViewedSessions

NO_KEYS = ("", "k" * 257, "turn:mine")
EVERY_PART = (
    Message(
        Role.USER,
        (
            Text("ключ \U0001f511\0\n"),
            Image("image/png", "iVBO"),
            File("b.pdf", "application/pdf", uri="upload:1"),
        ),
    ),
    Message(
        Role.ASSISTANT,
        (
            Reasoning("I think.", {"anthropic": {"signature": "é="}}),
            Text(""),
            ToolUse("a", "look", {"at": [1, None]}, {"gemini": {"s": 1}}),
            ToolUse("b", "look", {}, malformed="no object"),
        ),
    ),
    Message(
        Role.TOOL,
        (
            ToolOutput(
                *("a", "look", "seen"),
                media=(
                    Image("image/png", "iVBO"),
                    Audio("audio/wav", "UklG"),
                    File("a.csv", "text/csv", "YSxi"),
                    File("b.pdf", "application/pdf", uri="https://example.com/b"),
                ),
                structured={"rows": [1, None, "é"]},
            ),
            ToolOutput("b", "look", "no", is_error=True, structured=0),
        ),
    ),
)


class SessionsContract(ListedSessions, ForkedSessions, ViewedSessions):
    """Conversations keep every promise of the port.

    Example:
        ::

            class TestSessions(SessionsContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenRecords:
                    return partial(open_records, store, clock)
    """

    async def test_a_key_asked_for_twice_at_once_is_the_same_session(
        self, records: Records, opened: OpenRecords, clock: ManualClock
    ) -> None:
        """And later, and for the next process."""
        async with asyncio.timeout(self.patience):
            found = await asyncio.gather(
                *(records.sessions.open(ADA.id, "channel:1") for _ in range(20))
            )
        assert len({session.id for session in found}) == 1
        await clock.advance(60)
        again = await opened().sessions.open(ADA.id, "channel:1")
        assert again == found[0]
        assert (again.agent_id, again.key, again.next_seq) == (ADA.id, "channel:1", 0)
        assert (again.created_at, again.updated_at) == (START, START)

    async def test_a_key_is_its_agents_own(self, records: Records) -> None:
        """Another agent's is another session."""
        hers = await records.sessions.open(ADA.id, "key")
        his = await records.sessions.open(BOB.id, "key")
        assert hers.id != his.id
        assert (await records.sessions.open(ADA.id, "key")).id == hers.id

    async def test_without_a_key_every_session_is_new(self, records: Records) -> None:
        """None stands for no key, not for one that is shared."""
        made = [await records.sessions.open(ADA.id) for _ in range(3)]
        assert len({HERE, *(each.id for each in made)}) == 4

    async def test_a_key_has_its_form(self, records: Records) -> None:
        """From 1 to 256 characters, and not one of a turn."""
        for key in NO_KEYS:
            with pytest.raises(InvalidInput):
                await records.sessions.open(ADA.id, key)
        assert (await records.sessions.open(ADA.id, "é" * 256)).key == "é" * 256

    async def test_nobody_opens_a_session_of_no_agent(self, records: Records) -> None:
        """NotFound, with a key or without."""
        await records.agents.delete(BOB.id)
        for agent, key in (("nobody", "key"), ("nobody", None), (BOB.id, "key")):
            with pytest.raises(NotFound):
                await records.sessions.open(agent, key)
        assert await listed(records) == [HERE]

    async def test_what_is_to_stay_is_no_ephemeral_session(
        self, records: Records
    ) -> None:
        """Conflict, whichever was there first."""
        for ephemeral in (True, False):
            key = f"key {ephemeral}"
            await records.sessions.open(ADA.id, key, ephemeral=ephemeral)
            with pytest.raises(Conflict):
                await records.sessions.open(ADA.id, key, ephemeral=not ephemeral)
            found = await records.sessions.open(ADA.id, key, ephemeral=ephemeral)
            assert found.ephemeral is ephemeral

    async def test_an_archived_session_has_let_go_of_its_key(
        self, records: Records
    ) -> None:
        """The next one is new, and keeps the key while it is not archived."""
        old = await records.sessions.open(ADA.id, "key")
        await records.sessions.archive(old.id)
        new = await records.sessions.open(ADA.id, "key")
        assert new.id != old.id
        with pytest.raises(Conflict):
            await records.sessions.archive(old.id, on=False)
        assert (await records.sessions.get(old.id)).archived_at is not None
        await records.sessions.archive(new.id)
        await records.sessions.archive(old.id, on=False)
        assert (await records.sessions.open(ADA.id, "key")).id == old.id

    async def test_an_ephemeral_session_without_a_key_is_gone_at_the_next_start(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """With all that was said in it; one with a key stays."""
        keyless = await records.sessions.open(ADA.id, ephemeral=True)
        keyed = await records.sessions.open(ADA.id, "run:1", ephemeral=True)
        for session in (keyless, keyed):
            await say(records, session.id, "one")
        again = opened()
        await start_again(again)
        assert await is_gone(again, keyless.id)
        assert await again.journal.find(f"{keyless.id}:0") is None
        assert await said(again, keyed.id) == ["one", "re one"]
        assert await said(again) == []
        assert (await again.sessions.of_agent(ADA.id)).id == HERE

    async def test_a_session_is_read_by_its_own_agent(self, records: Records) -> None:
        """NotFound when it is another's, or nobody's."""
        assert (await records.sessions.get(HERE, ADA.id)).id == HERE
        for session, agent in ((HERE, BOB.id), ("nothing", ""), ("nothing", ADA.id)):
            with pytest.raises(NotFound):
                await records.sessions.get(session, agent)
        with pytest.raises(NotFound):
            await records.sessions.of_agent("nobody")

    async def test_an_archived_session_only_rests(
        self, records: Records, opened: OpenRecords, clock: ManualClock
    ) -> None:
        """It can be read; put away twice, it has rested since the first time."""
        old = await records.sessions.open(ADA.id, "key")
        await say(records, old.id, "one")
        await clock.advance(60)
        await records.sessions.archive(old.id)
        await clock.advance(60)
        await records.sessions.archive(old.id)
        found = opened()
        assert (await found.sessions.get(old.id)).archived_at == START + 60
        assert await said(found, old.id) == ["one", "re one"]
        await found.sessions.archive(old.id, on=False)
        assert (await found.sessions.get(old.id)).archived_at is None

    async def test_an_agents_own_session_is_neither_archived_nor_erased(
        self, records: Records
    ) -> None:
        """Conflict, and nothing is changed."""
        await say(records, HERE, "one")
        with pytest.raises(Conflict):
            await records.sessions.archive(HERE)
        with pytest.raises(Conflict):
            await records.sessions.erase(HERE)
        assert (await records.sessions.get(HERE)).archived_at is None
        assert await said(records) == ["one", "re one"]

    async def test_a_title_is_the_beginning_until_it_is_renamed(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Also when it is renamed before anything was said."""
        await say(records, HERE, "What is this?", "second")
        assert (await records.sessions.get(HERE)).title == "What is this?"
        beside = await records.sessions.open(ADA.id)
        for session_id in (HERE, beside.id):
            await records.sessions.rename(session_id, "Plans für May")
            await say(records, session_id, "third")
            found = await opened().sessions.get(session_id)
            assert found.title == "Plans für May"

    async def test_a_session_that_is_not_there_is_not_changed(
        self, records: Records
    ) -> None:
        """NotFound, whatever was wanted of it."""
        for change in (
            partial(records.sessions.rename, "nothing", "x"),
            partial(records.sessions.archive, "nothing"),
            partial(records.sessions.archive, "nothing", on=False),
            partial(records.sessions.set_thinking, "nothing", on=True),
        ):
            with pytest.raises(NotFound):
                await change()
        assert await is_gone(records, "nothing")

    async def test_thinking_is_switched_on_and_off(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """For one session alone."""
        for on in (True, False, True):
            await records.sessions.set_thinking(HERE, on=on)
            assert (await opened().sessions.get(HERE)).thinking is on
        assert not (await records.sessions.get(BOB.session_id)).thinking

    async def test_an_erased_session_goes_with_its_messages_and_turns(
        self, records: Records
    ) -> None:
        """Others stay, and its key is free."""
        beside = await records.sessions.open(ADA.id, "key")
        for session_id in (beside.id, HERE):
            await say(records, session_id, "one")
        await records.sessions.erase(beside.id)
        assert await is_gone(records, beside.id)
        assert await records.journal.find(f"{beside.id}:0") is None
        assert await records.journal.said(beside.id, f"{beside.id}:0") == []
        assert await records.journal.find(f"{HERE}:0") == KNOWN
        assert await said(records) == ["one", "re one"]
        new = await records.sessions.open(ADA.id, "key")
        assert (new.id != beside.id, new.next_seq) == (True, 0)

    async def test_what_a_turn_gives_back_is_taken_as_it_was_or_read(
        self, records: Records
    ) -> None:
        """It is handed out once; who cannot tell leaves nothing."""
        sessions = records.sessions
        assert sessions.take(HERE) is None
        known = await sessions.history(await sessions.get(HERE))
        sessions.give_back(HERE, known)
        assert sessions.take(HERE) in {None, known}
        assert sessions.take(HERE) is None
        sessions.give_back(HERE, None)
        assert sessions.take(HERE) is None

    async def test_what_is_forgotten_is_read_anew(self, records: Records) -> None:
        """Also when a turn has it just then; the turn after that may leave it again."""
        sessions = records.sessions
        known = await sessions.history(await sessions.get(HERE))
        for in_turn in (False, True):
            sessions.take(HERE)
            if in_turn:
                sessions.forget(HERE)
            sessions.give_back(HERE, known)
            if not in_turn:
                sessions.forget(HERE)
            assert sessions.take(HERE) is None

    async def test_no_change_is_hidden_by_what_was_given_back(
        self, records: Records
    ) -> None:
        """A session that was renamed, say, is not taken as it was before."""
        sessions = records.sessions
        beside = await sessions.open(ADA.id, "key")
        for change in (
            partial(sessions.rename, beside.id, "new"),
            partial(sessions.set_thinking, beside.id, on=True),
            partial(sessions.archive, beside.id),
            partial(sessions.archive, beside.id, on=False),
        ):
            known = await sessions.history(await sessions.get(beside.id))
            sessions.take(beside.id)
            sessions.give_back(beside.id, known)
            await change()
            taken = sessions.take(beside.id)
            assert taken is None or taken.session == await sessions.get(beside.id)

    async def test_messages_come_back_as_they_were_said(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Every part of them, with its number, turn, moment and labels."""
        for seq, message in enumerate(EVERY_PART):
            opens = None if seq else ADA.id
            labels = UNTRUSTED if seq == 1 else frozenset[str]()
            await records.journal.keep(
                replace(step(seq, message, opened=opens, labels=labels), at=START + seq)
            )
        found = opened().sessions
        session = await found.get(HERE)
        entries = await found.entries(session)
        assert tuple(each.message for each in entries) == EVERY_PART
        for seq, each in enumerate(entries):
            facts = each.seq, each.place, each.turn_id, each.at, each.partial
            assert facts == (seq, seq, "t", START + seq, False)
        assert [each.labels for each in entries] == [set(), UNTRUSTED, set()]
        assert (session.next_seq, session.updated_at) == (3, START + 2)
        history = await found.history(session)
        assert (tuple(history.messages), history.labels) == (EVERY_PART, UNTRUSTED)

    async def test_the_turns_of_a_session_are_those_that_spoke_in_it(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """By id, each as it stands."""
        await say(records, HERE, "one", "two")
        await say(records, BOB.session_id, "his")
        failed = ended(TurnState.FAILED, Cancelled("later"))
        await records.journal.keep(step(4, user("go"), opened=ADA.id, closed=failed))
        found = await opened().sessions.turns(HERE)
        assert {id_: turn.state for id_, turn in found.items()} == {
            f"{HERE}:0": TurnState.DONE,
            f"{HERE}:2": TurnState.DONE,
            "t": TurnState.FAILED,
        }
        assert found[f"{HERE}:0"] == KNOWN

    async def test_a_summary_stands_for_what_is_before_it(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """By place; the call is booked with it, and what was said is not lost."""
        await say(records, HERE, "one", "two")
        late = step(4, user("late"), opened=ADA.id, behind=1, closed=DONE)
        await records.journal.keep(late)
        await summarise(records, 2)
        found = opened()
        session = await found.sessions.get(HERE)
        numbers = session.first_seq, session.next_seq, session.message_count
        assert numbers == (2, 5, 3)
        assert session.summary == user("so far")
        assert await said(found) == ["so far", "two", "re two"]
        entries = await found.sessions.entries(session)
        assert [each.seq for each in entries] == [2, 3]
        whole = await found.journal.said(HERE, f"{HERE}:0")
        assert [each.message.text for each in whole] == ["one", "re one"]
        assert len(await found.journal.said(HERE, "t")) == 1
        assert (await found.usage.of_agent(ADA.id)).requests == 1

    async def test_a_summary_has_the_labels_of_what_it_stands_for(
        self, records: Records
    ) -> None:
        """So does what is said after it."""
        asked = step(0, user("go"), opened=ADA.id, labels=UNTRUSTED)
        await records.journal.keep(asked, step(1, user("ok"), closed=DONE))
        session = await summarise(records, 2)
        assert (await records.sessions.history(session)).labels == UNTRUSTED

    async def test_a_summary_of_what_has_changed_is_refused(
        self, records: Records
    ) -> None:
        """Conflict when it was compacted or deleted since; the call was paid for."""
        beside = await records.sessions.open(ADA.id)
        await say(records, HERE, "one", "two")
        before = await records.sessions.get(HERE)
        await summarise(records, 2)
        await records.sessions.erase(beside.id)
        for session in (before, beside):
            with pytest.raises(Conflict):
                await records.sessions.compact(session, 4, user("late"), SPENT)
        assert await said(records) == ["so far", "two", "re two"]
        assert await is_gone(records, beside.id)
        assert (await records.usage.of_agent(ADA.id)).requests == 3
