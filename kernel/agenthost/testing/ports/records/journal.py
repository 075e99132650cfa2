"""What every backend of RECORDS promises of turns, as tests to inherit."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from agenthost_chat.chat import ModelSettings

from ....context import UNTRUSTED
from ....errors import Cancelled, NotFound, Unavailable
from ....ports.records import CallState, Outcome, Records, TurnRecord, TurnState
from ....ports.sessions import Session
from ....ports.usage import Total
from ...clock import START
from .nodes import ApartNodes, stands
from .scenes import (
    ADA,
    BOB,
    DONE,
    HERE,
    KNOWN,
    RESULT,
    SPENT,
    Beside,
    OpenRecords,
    answer,
    ask_for,
    asking,
    ended,
    is_gone,
    output,
    refused,
    results,
    said,
    say,
    start_again,
    states,
    step,
    summarise,
    user,
)

OWN = Session("own", ADA.id, START, ephemeral=True)
FAILURES = (
    (TurnState.FAILED, Unavailable("later")),
    (TurnState.CANCELLED, Cancelled("stopped")),
    (TurnState.INTERRUPTED, None),
)


class JournalContract(ApartNodes):
    """The journal of turns keeps every promise of the port.

    Example:
        ::

            class TestJournal(JournalContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenRecords:
                    return partial(open_records, store, clock)
    """

    async def test_a_turn_is_journalled_step_by_step(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """What it intends, what began, what is known of its end."""
        await records.journal.keep(step(0, user("go"), opened=ADA.id, digest="given"))
        running = await records.journal.find("t")
        assert running is not None
        facts = running.agent_id, running.session_id, running.digest, running.error
        assert (running.state, *facts) == ("running", ADA.id, HERE, "given", None)
        await records.journal.keep(step(1, asking("a", "b"), spent=SPENT))
        assert await states(opened()) == {"a": "intended", "b": "intended"}
        await records.journal.start_call("t", "a")
        assert await states(opened()) == {"a": "started", "b": "intended"}
        await records.journal.keep(step(2, results("a", "b")))
        assert await states(opened()) == {"a": "committed", "b": "committed"}
        await records.journal.keep(step(3, answer("Done."), closed=DONE))
        found = opened()
        assert await found.journal.find("t") == replace(KNOWN, digest="given")
        assert await said(found) == ["go", "I will.", "", "Done."]
        assert await found.usage.of_turn(ADA.id, "t") == Total(1, 10, 5, 7)

    async def test_what_is_asked_of_answers_is_kept(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """So that a turn which goes on later asks the same."""
        asked = ModelSettings(
            tool_choice="look",
            response_format={"type": "object", "title": "Évora \ud800"},
            parallel_tool_calls=False,
            stop=("END", "\n"),
            top_p=0.5,
            seed=7,
            user="u-1",
        )
        await records.journal.keep(
            step(0, user("go"), opened=ADA.id, settings=asked),
        )
        await records.journal.keep(step(1, answer("Done."), closed=DONE))
        found = await opened().journal.find("t")
        assert found is not None
        assert found.settings == asked

    async def test_nobody_knows_a_turn_that_never_began(self, records: Records) -> None:
        """None, no words and no calls."""
        assert await records.journal.find("nothing") is None
        assert await records.journal.said(HERE, "nothing") == []
        assert await records.journal.calls("nothing") == {}

    async def test_steps_are_written_wholly_or_not_at_all(
        self, records: Records
    ) -> None:
        """Where the last one fails, nothing is left of the first."""
        await say(records, HERE, "one")
        await refused(
            records.journal.keep(
                step(2, user("two"), turn="u", opened=ADA.id, spent=SPENT),
                step(0, answer("no"), turn="u", spent=SPENT, closed=DONE),
            )
        )
        assert await records.journal.find("u") is None
        assert await said(records) == ["one", "re one"]
        assert (await records.sessions.get(HERE)).next_seq == 2
        assert (await records.usage.of_agent(ADA.id)).requests == 0

    async def test_steps_are_written_awaited_or_not(self, records: Records) -> None:
        """Each starts at once; the last one's end is the end of all."""
        first = records.journal.keep(step(0, user("go"), opened=ADA.id))
        second = records.journal.keep(step(1, asking("a", "b")))
        third = records.journal.start_call("t", "a")
        await records.journal.keep(step(2, results("a", "b"), closed=DONE))
        await asyncio.gather(first, second, third)
        assert await said(records) == ["go", "I will.", ""]
        assert await stands(records) is TurnState.DONE

    async def test_two_writers_of_a_session_collide_on_the_number(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """One is refused and neither overwrites the other, also at once."""
        other = opened()
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        mine = records.journal.keep(step(1, answer("mine"), spent=SPENT))
        theirs = other.journal.keep(step(1, answer("theirs"), spent=SPENT))
        async with asyncio.timeout(self.patience):
            wrote = await asyncio.gather(mine, theirs, return_exceptions=True)
        assert [each is None for each in wrote].count(True) == 1
        kept = "mine" if wrote[0] is None else "theirs"
        assert await said(records) == ["go", kept]
        await refused(other.journal.keep(step(0, user("late"))))
        assert await said(records) == ["go", kept]
        assert (await records.usage.of_agent(ADA.id)).requests == 1

    async def test_a_step_of_a_deleted_session_leaves_no_trace(
        self, records: Records
    ) -> None:
        """NotFound: no session, no turn, no usage."""
        beside = await records.sessions.open(ADA.id)
        await records.sessions.erase(beside.id)
        asked = step(0, user("go"), beside.id, opened=ADA.id, spent=SPENT)
        with pytest.raises(NotFound):
            await records.journal.keep(asked)
        assert await is_gone(records, beside.id)
        assert await records.journal.find("t") is None
        assert (await records.usage.of_agent(ADA.id)).requests == 0

    async def test_how_a_turn_ended_is_kept(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """In whatever state, with the words and the code of its error."""
        for seq, (state, error) in enumerate(FAILURES):
            asked = step(seq, user("go"), turn=state, opened=ADA.id)
            await records.journal.keep(asked)
            await records.journal.keep(step(turn=state, closed=ended(state, error)))
            found = await opened().journal.find(state)
            assert found is not None
            facts = found.state, found.result, found.agent_id, found.session_id
            assert facts == (state, RESULT, ADA.id, HERE)
            told = found.error and (found.error.message, found.error.code)
            assert told == (error and (error.message, error.code))

    async def test_an_answer_that_ends_its_turn_intends_no_call(
        self, records: Records
    ) -> None:
        """Whether the turn began before or with it."""
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        await records.journal.keep(step(1, asking("a", "b"), closed=DONE))
        asked = step(2, user("go"), turn="u", opened=ADA.id)
        failed = ended(TurnState.FAILED, Unavailable("later"))
        await records.journal.keep(asked, step(3, asking("a", "b"), turn="u"))
        await records.journal.keep(step(4, asking("a", "b"), turn="u", closed=failed))
        assert await states(records) == {}
        assert await states(records, "u") == {"a": "intended", "b": "intended"}

    async def test_a_turn_that_broke_off_does_not_know_how_its_calls_ended(
        self, records: Records
    ) -> None:
        """Those that had begun; its last message is partial, the others are not."""
        await ask_for(records, "a", "b", "c")
        await records.journal.start_call("t", "a")
        await records.journal.start_call("t", "b", [Outcome(output("a"))])
        stopped = ended(TurnState.CANCELLED, Cancelled("stopped"))
        await records.journal.keep(step(2, answer("Do"), closed=stopped))
        assert await states(records) == {
            "a": "committed",
            "b": "unknown",
            "c": "intended",
        }
        entries = await records.journal.said(HERE, "t")
        assert [each.partial for each in entries] == [False, False, True]

    async def test_a_call_whose_end_nobody_saw_is_unknown(
        self, records: Records
    ) -> None:
        """Though the message has words for it."""
        await ask_for(records, "a", "b")
        unknown = frozenset({"b"})
        await records.journal.keep(step(2, results("a", "b"), unknown=unknown))
        assert await states(records) == {"a": "committed", "b": "unknown"}

    async def test_what_a_call_gave_is_written_before_the_next_begins(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """With its labels, and whether its end is known; other turns have their own."""
        await ask_for(records, "a", "b", "c")
        asked = step(2, user("go"), turn="u", opened=ADA.id)
        await records.journal.keep(asked, step(3, asking("a", "b"), turn="u"))
        sure = Outcome(output("a"), labels=UNTRUSTED)
        unsure = Outcome(output("b"), known=False)
        await records.journal.start_call("t", "b", [sure])
        await records.journal.start_call("t", "c", [unsure])
        found = opened()
        assert await found.journal.calls("t") == {
            "a": (CallState.COMMITTED, sure),
            "b": (CallState.UNKNOWN, unsure),
            "c": (CallState.STARTED, None),
        }
        assert await states(found, "u") == {"a": "intended", "b": "intended"}

    async def test_a_waiting_turn_keeps_the_words_of_the_calls_that_ended(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """The others stay as they are; the stand-in goes when the turn goes on."""
        await ask_for(records, "a", "b")
        waits = TurnRecord(TurnState.WAITING, RESULT)
        asked = frozenset({"b"})
        await records.journal.keep(
            step(2, results("a", "b"), unknown=asked, closed=waits)
        )
        found = opened()
        assert await start_again(found) == 0
        assert await stands(found) is TurnState.WAITING
        assert await found.journal.calls("t") == {
            "a": (CallState.COMMITTED, Outcome(output("a"))),
            "b": (CallState.INTENDED, None),
        }
        assert [e.partial for e in await found.journal.said(HERE, "t")][2:] == [True]
        await found.journal.keep(step(reopened=True))
        assert len(await found.journal.said(HERE, "t")) == 2
        await found.journal.keep(step(3, results("a", "b"), behind=1))
        assert await states(found) == {"a": "committed", "b": "committed"}

    async def test_a_turn_that_goes_on_takes_back_what_it_was_saying(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """It runs without its error; the number of what is gone is not given again."""
        failed = ended(TurnState.FAILED, Unavailable("later"))
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        await records.journal.keep(step(1, answer("hal"), closed=failed))
        assert await said(records) == ["go", "hal"]
        await records.journal.keep(step(reopened=True))
        found = opened()
        known = await found.journal.find("t")
        assert known is not None
        assert (known.state, known.error) == (TurnState.RUNNING, None)
        assert await said(found) == ["go"]
        assert len(await found.journal.said(HERE, "t")) == 1
        session = await found.sessions.get(HERE)
        assert (session.next_seq, session.message_count) == (2, 1)
        await found.journal.keep(step(2, answer("whole"), closed=DONE))
        assert await said(found) == ["go", "whole"]
        assert await found.journal.find("t") == KNOWN

    async def test_a_turn_that_goes_on_stands_in_its_own_place(
        self, records: Records
    ) -> None:
        """What others said meanwhile stands behind it."""
        failed = ended(TurnState.FAILED, Unavailable("later"))
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        await records.journal.keep(step(closed=failed))
        await say(records, HERE, "other", turn="u")
        again = step(3, answer("whole"), behind=0, closed=DONE)
        await records.journal.keep(step(reopened=True), again)
        session = await records.sessions.get(HERE)
        entries = await records.sessions.entries(session)
        found = [(each.turn_id, each.seq, each.place) for each in entries]
        assert found == [("t", 0, 0), ("t", 3, 0), ("u", 1, 1), ("u", 2, 2)]
        assert session.next_seq == 4

    async def test_a_turns_own_session_is_gone_when_the_turn_is_closed(
        self, records: Records
    ) -> None:
        """With all that was said in it, at once or later; what it took stays."""
        asked = step(0, user("?"), "own", opened=ADA.id, own=OWN)
        told = step(1, answer("!"), "own", own=OWN, spent=SPENT, closed=DONE)
        await records.journal.keep(asked)
        for written in ((told,), (asked, told)):
            await records.journal.keep(*written)
            assert await is_gone(records, "own")
            assert await records.journal.find("t") is None
        assert (await records.usage.of_agent(ADA.id)).requests == 2

    async def test_an_effect_in_a_turns_own_session_is_journalled(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Before it begins all is there that the next process learns of it."""
        for asked in (
            [step(0, user("?"), "own", opened=ADA.id, own=OWN)],
            [step(0, user("?"), "own", opened=ADA.id, own=OWN), step(1, own=OWN)],
        ):
            for one in asked:
                await records.journal.keep(one)
            await records.journal.keep(step(1, asking("a"), "own", own=OWN))
            assert await states(opened()) == {"a": "intended"}
            assert await said(opened(), "own") == ["?", "I will."]
            await records.journal.start_call("t", "a")
            assert await states(opened()) == {"a": "started"}
            await records.journal.keep(step(2, results("a"), "own", own=OWN))
            assert await states(opened()) == {"a": "committed"}
            await records.journal.keep(
                step(3, answer("!"), "own", own=OWN, closed=DONE)
            )
            assert await is_gone(opened(), "own")
            assert await states(opened()) == {}

    async def test_a_turns_own_session_with_a_key_stays(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """It can be asked for again, after the next start too."""
        own = replace(OWN, key="turn:mine")
        asked = step(0, user("?"), "own", opened=ADA.id, own=own)
        told = step(1, answer("!"), "own", own=own, closed=DONE)
        await records.journal.keep(asked)
        assert await said(records, "own") == ["?"]
        await records.journal.keep(told)
        found = opened()
        await start_again(found)
        assert await said(found, "own") == ["?", "!"]
        assert (await found.sessions.get("own")).ephemeral
        assert await stands(found) is TurnState.DONE

    async def test_a_turns_own_session_that_gets_a_key_at_its_end_stays(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """All that was said in it is there."""
        asked = step(0, user("?"), "own", opened=ADA.id, own=OWN)
        told = step(1, answer("!"), "own", own=replace(OWN, key="k"), closed=DONE)
        await records.journal.keep(asked)
        await records.journal.keep(told)
        assert await said(opened(), "own") == ["?", "!"]
        assert await stands(opened()) is TurnState.DONE

    async def test_what_goes_with_a_step_is_written_or_nothing_is(
        self, records: Records
    ) -> None:
        """Also of a turn that leaves nothing else; refused, nothing is written."""
        also = Beside()
        begun = step(0, user("?"), opened=ADA.id, also=also)
        also.refuses = True
        with pytest.raises(Unavailable, match="the book is closed"):
            await records.journal.keep(begun)
        assert await records.journal.find("t") is None
        assert await said(records) == []
        also.refuses = False
        await records.journal.keep(begun)
        assert also.times >= 1
        also.times = 0
        asked = step(0, user("?"), "own", "u", opened=ADA.id, own=OWN)
        told = step(1, answer("!"), "own", "u", own=OWN, closed=DONE, also=also)
        await records.journal.keep(asked, told)
        assert also.times >= 1

    async def test_a_turns_own_session_is_not_begun_for_a_deleted_agent(
        self, records: Records
    ) -> None:
        """NotFound: no session, no turn."""
        await records.agents.delete(ADA.id)
        for own in (OWN, replace(OWN, key="turn:mine")):
            with pytest.raises(NotFound):
                await records.journal.keep(
                    step(0, user("?"), "own", opened=ADA.id, own=own)
                )
        assert await is_gone(records, "own")
        assert await records.journal.find("t") is None

    async def test_what_was_said_in_a_turn_is_read_when_it_is_summarised(
        self, records: Records
    ) -> None:
        """Its own words alone, in order."""
        await say(records, HERE, "one", "two")
        await summarise(records, 2)
        entries = await records.journal.said(HERE, f"{HERE}:0")
        assert [each.message.text for each in entries] == ["one", "re one"]

    async def test_a_late_step_is_written_once_the_store_takes_it(
        self, records: Records
    ) -> None:
        """By itself; one that cannot be written holds up no other."""
        await say(records, HERE, "one")
        begun = step(0, user("go"), BOB.session_id, opened=BOB.id)
        await records.journal.keep(begun)
        asked = step(2, user("go"), turn="bad", opened=ADA.id)
        await records.journal.keep(asked)
        records.journal.keep_late(step(0, answer("no"), turn="bad", closed=DONE))
        late = step(1, answer("late"), BOB.session_id, closed=DONE)
        records.journal.keep_late(late)
        async with asyncio.timeout(self.patience):
            # Nobody tells when it is written.
            while await stands(records) is TurnState.RUNNING:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert await said(records, BOB.session_id) == ["go", "late"]
        assert await said(records) == ["one", "re one", "go"]

    async def test_a_late_step_is_written_before_its_sessions_next_turn(
        self, records: Records
    ) -> None:
        """Once, when it is asked for; where nothing is left nothing is done."""
        await records.journal.close_late(HERE)
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        records.journal.keep_late(step(1, answer("late"), closed=DONE))
        for _ in range(2):
            await records.journal.close_late(HERE)
            assert await records.journal.find("t") == KNOWN
        assert await said(records) == ["go", "late"]

    async def test_a_late_step_that_cannot_be_written_is_told(
        self, records: Records
    ) -> None:
        """Each time its session is about to go on; another session does."""
        await say(records, HERE, "one")
        await records.journal.keep(step(2, user("go"), opened=ADA.id))
        records.journal.keep_late(step(0, answer("no"), closed=DONE))
        for _ in range(2):
            await refused(records.journal.close_late(HERE))
        await records.journal.close_late(BOB.session_id)
        assert await said(records) == ["one", "re one", "go"]

    async def test_what_is_late_at_the_end_is_closed_at_the_next_start(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """As it ended, or as interrupted: it never says running for ever."""
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        records.journal.keep_late(step(1, answer("late"), closed=DONE))
        for _ in range(2):
            await records.journal.stop()
        found = opened()
        await start_again(found)
        assert await stands(found) in {TurnState.DONE, TurnState.INTERRUPTED}

    async def test_a_start_marks_what_was_left_running(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """And counts it, once; how calls that had begun ended is not known."""
        await ask_for(records, "a", "b", "c")
        await records.journal.start_call("t", "a")
        await records.journal.start_call("t", "b", [Outcome(output("a"))])
        await say(records, BOB.session_id, "done")
        failed = ended(TurnState.FAILED, Unavailable("later"))
        await records.journal.keep(
            step(2, user("go"), turn="u", opened=ADA.id, closed=failed)
        )
        found = opened()
        assert [await start_again(found) for _ in range(2)] == [1, 0]
        assert await stands(found) is TurnState.INTERRUPTED
        assert await stands(found, "u") is TurnState.FAILED
        assert await stands(found, f"{BOB.session_id}:0") is TurnState.DONE
        assert await states(found) == {
            "a": "committed",
            "b": "unknown",
            "c": "intended",
        }
        assert await said(found) == ["go", "I will.", "go"]
