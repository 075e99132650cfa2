"""What every backend of RECORDS promises of pins, and of summaries taken back."""

from __future__ import annotations

import pytest
from agenthost_chat.chat import Message, Role, ToolOutput, ToolUse

from ....errors import Conflict, NotFound
from ....ports.records import Records
from .scenes import (
    ADA,
    DONE,
    HERE,
    RecordsFixtures,
    answer,
    is_gone,
    said,
    say,
    step,
    summarise,
    user,
)

ASKS = Message(Role.ASSISTANT, (ToolUse("c", "look", {}),))
FOUND = Message(Role.TOOL, (ToolOutput("c", "look", "found"),))


class ViewedSessions(RecordsFixtures):
    """Messages that are kept whole, and views that were before."""

    async def test_a_pinned_message_stands_whole_behind_the_summary(
        self, records: Records
    ) -> None:
        """Pinned before or after, until it no longer is; the count goes with it."""
        await say(records, HERE, "one", "two", "three")
        await records.sessions.pin(HERE, 2)
        await records.sessions.pin(HERE, 2)
        await summarise(records, 4)
        assert await said(records) == ["so far", "two", "three", "re three"]
        assert (await records.sessions.get(HERE)).message_count == 4
        await records.sessions.pin(HERE, 1)
        assert await said(records) == ["so far", "re one", "two", "three", "re three"]
        pinned = await records.sessions.pinned(HERE)
        assert [each.seq for each in pinned] == [1, 2]
        await records.sessions.pin(HERE, 1, on=False)
        await records.sessions.pin(HERE, 2, on=False)
        await records.sessions.pin(HERE, 2, on=False)
        assert await said(records) == ["so far", "three", "re three"]
        assert (await records.sessions.get(HERE)).message_count == 3

    async def test_a_pinned_call_goes_with_its_result(self, records: Records) -> None:
        """And a result with its call; one that has none yet is not pinned."""
        await records.journal.keep(step(0, user("go"), opened=ADA.id))
        await records.journal.keep(step(1, ASKS))
        with pytest.raises(Conflict):
            await records.sessions.pin(HERE, 1)
        await records.journal.keep(step(2, FOUND), step(3, answer("so"), closed=DONE))
        await say(records, HERE, "next")
        for either in (1, 2):
            await records.sessions.pin(HERE, either)
            pinned = await records.sessions.pinned(HERE)
            assert [each.message for each in pinned] == [ASKS, FOUND]
            await records.sessions.pin(HERE, 3 - either, on=False)
            assert list(await records.sessions.pinned(HERE)) == []

    async def test_what_is_not_there_is_not_pinned(self, records: Records) -> None:
        """NotFound for a message and for a session."""
        await say(records, HERE, "one")
        for session, seq in ((HERE, 7), (HERE, -1), (HERE, 10**30), ("nowhere", 0)):
            with pytest.raises(NotFound):
                await records.sessions.pin(session, seq)

    async def test_pins_go_into_a_fork_and_end_with_their_session(
        self, records: Records
    ) -> None:
        """A fork is summarised by itself later."""
        await say(records, HERE, "one", "two")
        await records.sessions.pin(HERE, 0)
        await summarise(records, 2)
        fork = await records.sessions.fork(await records.sessions.get(HERE))
        assert await said(records, fork.id) == ["so far", "one", "two", "re two"]
        await records.sessions.compact(fork, 2, user("later"), None)
        assert await said(records, fork.id) == ["later", "one", "re two"]
        await records.sessions.erase(fork.id)
        assert await is_gone(records, fork.id)
        assert list(await records.sessions.pinned(fork.id)) == []
        assert len(await records.sessions.pinned(HERE)) == 1

    async def test_summaries_are_taken_back_one_by_one(self, records: Records) -> None:
        """To all that was said; what came since stays. Then there is nothing left."""
        await say(records, HERE, "one", "two")
        first = await summarise(records, 2)
        await say(records, HERE, "three")
        await records.sessions.compact(first, 4, user("all so far"), None)
        assert await said(records) == ["all so far", "three", "re three"]
        for left in (["so far", "two", "re two"], ["one", "re one", "two", "re two"]):
            known = await records.sessions.get(HERE)
            assert await records.sessions.restore(known)
            assert await said(records) == [*left, "three", "re three"]
            count = (await records.sessions.get(HERE)).message_count
            assert count == len(left) + 2
        known = await records.sessions.get(HERE)
        assert (known.first_seq, known.summary, known.undone_at) == (0, None, 6)
        assert not await records.sessions.restore(known)

    async def test_what_changed_since_it_was_read_is_not_taken_back(
        self, records: Records
    ) -> None:
        """Asked twice at once, one summary is taken back and not two."""
        await say(records, HERE, "one", "two", "three")
        await summarise(records, 2)
        known = await summarise(records, 4)
        assert await records.sessions.restore(known)
        with pytest.raises(Conflict):
            await records.sessions.restore(known)
        assert (await records.sessions.get(HERE)).first_seq == 2
