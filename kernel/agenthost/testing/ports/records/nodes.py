"""What every backend of RECORDS promises to several daemons over the same rows."""

from __future__ import annotations

import asyncio

import pytest

from ....errors import Conflict, Superseded
from ....ports.records import (
    NOBODY,
    Records,
    SessionPlace,
    TurnRecord,
    TurnState,
    Writer,
)
from .scenes import (
    ADA,
    DONE,
    HERE,
    RESULT,
    SPENT,
    OpenRecords,
    RecordsFixtures,
    answer,
    asking,
    is_gone,
    said,
    states,
    step,
    user,
)


async def stands(records: Records, turn: str = "t") -> TurnState | None:
    """Tell where a turn stands."""
    known = await records.journal.find(turn)
    return None if known is None else known.state


async def refuses(records: Records, writer: Writer) -> None:
    """Demand that a turn is gone on with by no such writer, and nothing is written."""
    before = await said(records), await states(records), await stands(records)
    for late in (
        step(1, answer("late"), writer=writer, spent=SPENT),
        step(1, answer("late"), writer=writer, closed=DONE),
        step(writer=writer, closed=DONE),
    ):
        with pytest.raises(Superseded):
            await records.journal.keep(late)
    with pytest.raises(Superseded):
        await records.journal.start_call("t", "a", writer=writer)
    after = await said(records), await states(records), await stands(records)
    assert after == before
    assert (await records.usage.of_agent(ADA.id)).requests == 0


async def waits(place: SessionPlace) -> asyncio.Task[None]:
    """Wait for a place, which is not reached at once."""
    waiting = asyncio.create_task(place.reached())
    await asyncio.wait([waiting], timeout=0.05)
    assert not waiting.done()
    return waiting


class LinedUpNodes(RecordsFixtures):
    """What all daemons ask of a session is done in one order."""

    async def test_a_session_is_held_in_the_order_in_which_it_was_asked_for(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Whichever daemon asks."""
        other = opened()
        a, b = await records.journal.enter("a"), await other.journal.enter("b")
        first = records.journal.line_up(HERE, "1", a)
        await first.reached()
        second = other.journal.line_up(HERE, "2", b)
        waiting = await waits(second)
        third = records.journal.line_up(HERE, "3", a)
        behind = await waits(third)
        assert await other.journal.holder(HERE) == ("a", "1")
        async with asyncio.timeout(self.patience):
            first.leave()
            await waiting
            assert await records.journal.holder(HERE) == ("b", "2")
            assert not behind.done()
            second.leave()
            await behind
            third.leave()

    async def test_sessions_do_not_wait_for_each_other(self, records: Records) -> None:
        """Nor is one held that has been let go of."""
        a = await records.journal.enter("a")
        held = records.journal.line_up(HERE, "1", a)
        async with asyncio.timeout(self.patience):
            await held.reached()
            await records.journal.line_up("elsewhere", "2", a).reached()
            held.leave()
            await records.journal.line_up(HERE, "3", a).reached()

    async def test_who_leaves_the_line_holds_up_nobody(self, records: Records) -> None:
        """Also before it was reached."""
        a = await records.journal.enter("a")
        first, second, third = (
            records.journal.line_up(HERE, work, a) for work in ("1", "2", "3")
        )
        waiting = await waits(third)
        second.leave()
        first.leave()
        async with asyncio.timeout(self.patience):
            await waiting
        third.leave()

    async def test_a_start_takes_earlier_ones_of_its_node_out_of_the_line(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """They neither hold a session nor line up for one any more."""
        first = await records.journal.enter("a")
        held = records.journal.line_up(HERE, "1", first)
        await held.reached()
        waiting = await waits(records.journal.line_up(HERE, "2", first))
        again = opened()
        second = await again.journal.enter("a")
        await again.journal.interrupt(second)
        async with asyncio.timeout(self.patience):
            await again.journal.line_up(HERE, "3", second).reached()
            with pytest.raises(Superseded):
                await waiting
            with pytest.raises(Superseded):
                await records.journal.line_up(HERE, "4", first).reached()
        assert await again.journal.holder(HERE) == ("a", "3")

    async def test_what_would_wait_for_itself_is_refused(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """One turn asks another, which waits for the first, over two daemons."""
        other = opened()
        a, b = await records.journal.enter("a"), await other.journal.enter("b")
        await records.journal.line_up(HERE, "1", a).reached()
        await other.journal.line_up("elsewhere", "2", b).reached()
        waiting = await waits(records.journal.line_up("elsewhere", "3", a, "1"))
        closes = other.journal.line_up(HERE, "4", b, "2")
        async with asyncio.timeout(self.patience):
            with pytest.raises(Conflict):
                await closes.reached()
        closes.leave()
        assert not waiting.done()
        waiting.cancel()


class ApartNodes(LinedUpNodes):
    """A running turn belongs to one daemon."""

    async def test_each_start_of_a_node_is_an_epoch_of_its_own(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Also two at once; those of another node are its own."""
        async with asyncio.timeout(self.patience):
            first, second = await asyncio.gather(
                records.journal.enter("a"), opened().journal.enter("a")
            )
        third = await opened().journal.enter("a")
        assert {first.node, second.node, third.node} == {"a"}
        assert 0 < min(first.epoch, second.epoch) < max(first.epoch, second.epoch)
        assert third.epoch > max(first.epoch, second.epoch)
        assert (await records.journal.enter("b")).node == "b"

    async def test_a_start_leaves_the_turns_of_other_nodes_alone(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """With their calls and what they have opened; they go on and end."""
        a = await records.journal.enter("a")
        fleeting = await records.sessions.open(ADA.id, ephemeral=True)
        await records.journal.keep(
            step(0, user("go"), opened=ADA.id, writer=a),
            step(1, asking("a"), writer=a),
        )
        await records.journal.start_call("t", "a", writer=a)
        other = opened()
        b = await other.journal.enter("b")
        assert await other.journal.interrupt(b) == 0
        assert await stands(other) is TurnState.RUNNING
        assert await states(other) == {"a": "started"}
        assert not await is_gone(other, fleeting.id)
        told = step(2, answer("Done."), writer=a, closed=DONE)
        await records.journal.keep(told)
        assert await stands(other) is TurnState.DONE

    async def test_a_later_start_has_what_an_earlier_one_left(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """The earlier one, and its late steps, change nothing any more."""
        first = await records.journal.enter("a")
        asked = step(0, user("go"), opened=ADA.id, writer=first)
        await records.journal.keep(asked)
        again = opened()
        second = await again.journal.enter("a")
        assert await again.journal.interrupt(second) == 1
        assert await again.journal.interrupt(second) == 0
        await refuses(records, first)
        begun = step(1, user("new"), turn="u", opened=ADA.id, writer=first)
        for late in (begun, step(reopened=True, writer=first)):
            with pytest.raises(Superseded):
                await records.journal.keep(late)
        records.journal.keep_late(step(1, answer("late"), writer=first, closed=DONE))
        await records.journal.close_late(HERE)
        assert await stands(records) is TurnState.INTERRUPTED
        assert await stands(records, "u") is None
        assert await said(records) == ["go"]

    async def test_a_start_marks_nothing_that_it_began_itself(
        self, records: Records
    ) -> None:
        """Nor what it has gone on with."""
        writer = await records.journal.enter("a")
        await records.journal.keep(step(0, user("go"), opened=ADA.id, writer=writer))
        assert await records.journal.interrupt(writer) == 0
        assert await stands(records) is TurnState.RUNNING

    async def test_a_turn_that_was_taken_over_refuses_the_first(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Whoever reopened it last goes on with it."""
        other = opened()
        a, b = await records.journal.enter("a"), await other.journal.enter("b")
        await records.journal.keep(step(0, user("go"), opened=ADA.id, writer=a))
        await other.journal.keep(step(reopened=True, writer=b))
        await refuses(records, a)
        await other.journal.keep(step(1, answer("Done."), writer=b, closed=DONE))
        assert await said(records) == ["go", "Done."]

    async def test_a_turn_ends_once(self, records: Records) -> None:
        """Its own daemon neither ends it again nor goes on with it."""
        await records.journal.keep(step(0, user("go"), opened=ADA.id, closed=DONE))
        await refuses(records, NOBODY)
        with pytest.raises(Superseded):
            await records.journal.keep(step(reopened=True))
        assert await stands(records) is TurnState.DONE

    async def test_a_turn_that_waits_is_anybodys(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Another daemon may have the answer it waits for."""
        a = await records.journal.enter("a")
        waits = TurnRecord(TurnState.WAITING, RESULT)
        await records.journal.keep(step(0, user("go"), opened=ADA.id, writer=a))
        await records.journal.keep(step(1, asking("a"), writer=a))
        await records.journal.keep(step(writer=a, closed=waits))
        other = opened()
        b = await other.journal.enter("b")
        await other.journal.keep(step(2, answer("Done."), writer=b, closed=DONE))
        assert await stands(records) is TurnState.DONE
        assert await said(records) == ["go", "I will.", "Done."]
