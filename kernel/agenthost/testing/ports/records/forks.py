"""What every backend of RECORDS promises of forks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ....context import UNTRUSTED
from ....errors import Cancelled, Conflict, NotFound
from ....ports.records import Records, TurnState
from ...clock import START, ManualClock
from .scenes import (
    ADA,
    DONE,
    HERE,
    KNOWN,
    OpenRecords,
    RecordsFixtures,
    answer,
    ask_for,
    ended,
    listed,
    results,
    said,
    say,
    states,
    step,
    summarise,
    user,
)


class ForkedSessions(RecordsFixtures):
    """A fork begins with what stands before a message, and goes its own way."""

    async def test_a_fork_begins_with_what_stands_before_a_message(
        self, records: Records, opened: OpenRecords, clock: ManualClock
    ) -> None:
        """It goes its own way, and the original stays as it is."""
        await say(records, HERE, "one", "two", "three")
        before = await records.sessions.get(HERE)
        await clock.advance(60)
        fork = await records.sessions.fork(before, 2)
        assert (fork.agent_id, fork.key, fork.title) == (ADA.id, None, "one")
        assert (fork.parent_id, fork.at_message, fork.next_seq) == (HERE, 2, 2)
        assert (fork.created_at, fork.ephemeral) == (START + 60, False)
        found = opened()
        assert await found.sessions.get(fork.id) == fork
        await say(found, fork.id, "other")
        assert await said(found, fork.id) == ["one", "re one", "other", "re other"]
        assert await found.sessions.get(HERE) == before
        assert len(await said(found)) == 6
        assert fork.id in await listed(found, text="one")

    async def test_a_fork_of_all_and_one_of_nothing(self, records: Records) -> None:
        """What begins anew has its title from its own first message."""
        await say(records, HERE, "one")
        session = await records.sessions.get(HERE)
        whole = await records.sessions.fork(session)
        empty = await records.sessions.fork(session, 0)
        assert await said(records, whole.id) == ["one", "re one"]
        assert await said(records, empty.id) == []
        await say(records, empty.id, "uno")
        assert (await records.sessions.get(empty.id)).title == "uno"

    async def test_an_archived_session_is_forked_and_the_fork_is_not_archived(
        self, records: Records
    ) -> None:
        """It has no key either: the original finds its own again."""
        old = await records.sessions.open(ADA.id, "key")
        await say(records, old.id, "one")
        await records.sessions.archive(old.id)
        resting = await records.sessions.get(old.id)
        fork = await records.sessions.fork(resting)
        assert (fork.archived_at, fork.key) == (None, None)
        assert await said(records, fork.id) == ["one", "re one"]
        assert await records.sessions.get(old.id) == resting
        await records.sessions.archive(old.id, on=False)
        assert (await records.sessions.open(ADA.id, "key")).id == old.id

    async def test_nothing_is_forked_before_a_message_that_is_not_there(
        self, records: Records
    ) -> None:
        """NotFound, and no session is made."""
        await say(records, HERE, "one")
        session = await records.sessions.get(HERE)
        for number in (2, 7, -1):
            with pytest.raises(NotFound):
                await records.sessions.fork(session, number)
        assert await listed(records, agent_id=ADA.id) == [HERE]

    async def test_a_session_that_was_deleted_meanwhile_is_not_forked(
        self, records: Records
    ) -> None:
        """Conflict, and no session is made: not even an empty one."""
        beside = await records.sessions.open(ADA.id)
        await say(records, beside.id, "one")
        session = await records.sessions.get(beside.id)
        await records.sessions.erase(beside.id)
        with pytest.raises(Conflict):
            await records.sessions.fork(session)
        assert await listed(records, agent_id=ADA.id) == [HERE]

    async def test_a_fork_begins_with_the_summary_or_before_it(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """With its labels, in either case."""
        asked = step(0, user("one"), opened=ADA.id, labels=UNTRUSTED)
        await records.journal.keep(asked, step(1, answer("re one"), closed=DONE))
        await say(records, HERE, "two", "three")
        session = await summarise(records, 4)
        behind = await records.sessions.fork(session, 5)
        before = await records.sessions.fork(session, 2)
        found = opened()
        assert await said(found, behind.id) == ["so far", "three"]
        assert await said(found, before.id) == ["one", "re one"]
        for fork in (behind, before):
            history = await found.sessions.history(fork)
            assert history.labels == UNTRUSTED

    async def test_a_turn_without_a_whole_answer_is_not_the_forks(
        self, records: Records
    ) -> None:
        """Its words are, but it cannot be resumed there."""
        await say(records, HERE, "one")
        failed = ended(TurnState.FAILED, Cancelled("later"))
        await records.journal.keep(step(2, user("go"), opened=ADA.id))
        await records.journal.keep(step(3, answer("half"), closed=failed))
        fork = await records.sessions.fork(await records.sessions.get(HERE))
        assert await said(records, fork.id) == ["one", "re one", "go", "half"]
        assert [*await records.sessions.turns(fork.id)] == [f"{HERE}:0"]
        assert {*await records.sessions.turns(HERE)} == {f"{HERE}:0", "t"}

    async def test_turns_stay_while_a_fork_or_its_original_shows_them(
        self, records: Records
    ) -> None:
        """With their calls; they go with the last session that does."""
        await ask_for(records, "a")
        await records.journal.keep(step(2, results("a")))
        await records.journal.keep(step(3, answer("ok"), closed=DONE))
        fork = await records.sessions.fork(await records.sessions.get(HERE))
        second = await records.sessions.fork(await records.sessions.get(fork.id))
        await records.sessions.erase(second.id)
        assert (await records.sessions.turns(HERE))["t"] == KNOWN
        await records.sessions.erase(fork.id)
        assert await states(records) == {"a": "committed"}
        beside = await records.sessions.fork(await records.sessions.get(HERE))
        last = await records.sessions.fork(await records.sessions.get(beside.id))
        await records.sessions.erase(beside.id)
        fresh = replace(ADA, session_id="fresh")
        await records.agents.switch_session(fresh, HERE, keep=False)
        assert (await records.sessions.turns(last.id))["t"] == KNOWN
        await records.sessions.erase(last.id)
        assert await records.journal.find("t") is None
        assert await states(records) == {}

    async def test_a_fork_has_each_turn_in_its_place(self, records: Records) -> None:
        """Also what was written late, and with numbers that have no gaps."""
        await say(records, HERE, "one", "two")
        late = step(4, answer("late"), opened=ADA.id, closed=DONE, behind=1)
        await records.journal.keep(late)
        fork = await records.sessions.fork(await records.sessions.get(HERE), 2)
        assert await said(records, fork.id) == ["one", "re one", "late"]
        assert (fork.next_seq, fork.message_count) == (3, 3)
        entries = await records.sessions.entries(fork)
        assert [each.seq for each in entries] == [0, 1, 2]
        assert [each.place for each in entries] == [0, 1, 2]
        await say(records, fork.id, "three")
        assert (await said(records, fork.id))[3:] == ["three", "re three"]
