"""The contract of the journal holds for one in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from agenthost import (
    NOBODY,
    Entry,
    Message,
    Outcome,
    Session,
    Step,
    TurnRecord,
    TurnState,
    Writer,
)
from agenthost.testing import JournalContract
from agenthost.testing.ports.memory_records.journal import MemoryJournal
from agenthost.testing.ports.memory_records.places import MemoryPlace
from agenthost.testing.ports.memory_records.rows import Rows
from agenthost.testing.ports.records.scenes import DONE

from ..finding import names_in, names_of
from .broken import InMemory, Lazy, finds_broken

T = TypeVar("T")
NO_LABELS = frozenset[str]()


class TestAJournalInMemory(InMemory, JournalContract):
    """It keeps every promise."""


class WritesNoStart(MemoryJournal):
    def _start_call(self, turn_id: str, call_id: str, ended: Sequence[Outcome]) -> None:
        return


class LosesTheDigest(MemoryJournal):
    def _open(self, step: Step, agent_id: str) -> None:
        super()._open(replace(step, digest=None), agent_id)


class LosesSettings(MemoryJournal):
    def _open(self, step: Step, agent_id: str) -> None:
        super()._open(replace(step, settings=None), agent_id)


class BooksNothing(MemoryJournal):
    def _keep_all(self, steps: Sequence[Step]) -> None:
        super()._keep_all([replace(step, spent=None) for step in steps])


class MakesUpTurns(MemoryJournal):
    async def find(self, turn_id: str) -> TurnRecord | None:
        return await super().find(turn_id) or DONE


class OneByOne(Rows):
    def write(self, fn: Callable[..., T], *given: Any) -> asyncio.Future[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(fn(*given))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits
            done.set_exception(error)
        return done


class KeepsWhenAwaited(MemoryJournal):
    def keep(self, *steps: Step) -> Any:
        return Lazy(self._rows.write, self._keep_all, steps)


class TheLastWriterWins(Rows):
    def append(self, step: Step, message: Message) -> None:
        self.messages.pop((step.session_id, step.seq), None)
        super().append(step, message)


class TheNextNumberIsFree(Rows):
    def append(self, step: Step, message: Message) -> None:
        seq = max(step.seq, self.session(step.session_id).next_seq)
        super().append(replace(step, seq=seq), message)


class MakesTheSession(Rows):
    def append(self, step: Step, message: Message) -> None:
        made = Session(step.session_id, step.opened or "", step.at)
        self.sessions.setdefault(step.session_id, made)
        super().append(step, message)


class LosesErrors(MemoryJournal):
    def _close(self, step: Step, closed: TurnRecord) -> None:
        super()._close(step, replace(closed, error=None))


class LosesLabels(MemoryJournal):
    def _close(self, step: Step, closed: TurnRecord) -> None:
        super()._close(
            step, replace(closed, result=replace(closed.result, labels=NO_LABELS))
        )


class IntendsAll(MemoryJournal):
    def _follow_calls(self, step: Step, message: Message) -> None:
        super()._follow_calls(replace(step, closed=None), message)


class KnowsAllEnds(MemoryJournal):
    def _abandon_calls(self, turn_id: str) -> None:
        return


class AbandonsWhatIsIntended(MemoryJournal):
    def _close(self, step: Step, closed: TurnRecord) -> None:
        for turn, call in [*self._rows.calls]:
            if (self._rows.calls[turn, call])[0] == "intended":
                self._start_call(turn, call, ())
        super()._close(step, closed)


class SaysAllWhole(Rows):
    def append(self, step: Step, message: Message) -> None:
        super().append(replace(step, closed=None), message)


class TakesWordsForEnds(MemoryJournal):
    def _follow_calls(self, step: Step, message: Message) -> None:
        super()._follow_calls(replace(step, unknown=NO_LABELS), message)


class LosesOutcomes(MemoryJournal):
    def _start_call(self, turn_id: str, call_id: str, ended: Sequence[Outcome]) -> None:
        super()._start_call(turn_id, call_id, ())


class BelievesOutcomes(MemoryJournal):
    def _start_call(self, turn_id: str, call_id: str, ended: Sequence[Outcome]) -> None:
        known = [replace(each, known=True) for each in ended]
        super()._start_call(turn_id, call_id, known)


class WashesOutcomes(MemoryJournal):
    def _start_call(self, turn_id: str, call_id: str, ended: Sequence[Outcome]) -> None:
        known = [replace(each, labels=NO_LABELS) for each in ended]
        super()._start_call(turn_id, call_id, known)


class AsksAgain(MemoryJournal):
    def _follow_calls(self, step: Step, message: Message) -> None:
        if step.closed is None or step.closed.state is not TurnState.WAITING:
            super()._follow_calls(step, message)


class InterruptsWhoWaits(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        for id_, turn in self._rows.turns.items():
            if turn.state is TurnState.WAITING:
                self._rows.turns[id_] = replace(turn, state=TurnState.RUNNING)
        return super()._interrupt(writer)


class LeavesWhatBrokeOff(MemoryJournal):
    def _reopen(self, step: Step) -> None:
        self._set(step.turn_id, state=TurnState.RUNNING)


class KeepsTheError(MemoryJournal):
    def _reopen(self, step: Step) -> None:
        before = self._rows.turns[step.turn_id]
        super()._reopen(step)
        now = self._rows.turns[step.turn_id]
        self._rows.turns[step.turn_id] = replace(now, error=before.error)


class CountsWhatIsGone(Rows):
    def supersede(self, at: tuple[str, int]) -> None:
        self.superseded[at] = self.messages.pop(at)


class GivesNumbersAgain(MemoryJournal):
    def _reopen(self, step: Step) -> None:
        super()._reopen(step)
        for session_id, seq in self._rows.superseded:
            self._rows.change_session(session_id, next_seq=seq)


class AtTheEnd(Rows):
    def append(self, step: Step, message: Message) -> None:
        super().append(replace(step, behind=None), message)


class LeavesItsOwn(MemoryJournal):
    def _keep_all(self, steps: Sequence[Step]) -> None:
        own = steps[0].own
        if own is not None and steps[0].opened is None:
            steps = [replace(step, own=None) for step in steps]
        super()._keep_all(steps)


class ForgetsToBookItsOwn(MemoryJournal):
    def _keep_all(self, steps: Sequence[Step]) -> None:
        if steps[0].own is not None:
            steps = [replace(step, spent=None) for step in steps]
        super()._keep_all(steps)


class EndsWhatHasAKey(MemoryJournal):
    def _keep_all(self, steps: Sequence[Step]) -> None:
        super()._keep_all(steps)
        if steps[0].own is not None and steps[-1].closed is not None:
            self._rows.erase_sessions([steps[0].own.id])


class WritesAtTheEnd(MemoryJournal):
    """Of a session of a turn's own nothing, whatever it does, until its end."""

    def _keep_all(self, steps: Sequence[Step]) -> None:
        if steps[-1].own is None or steps[-1].closed is not None:
            super()._keep_all(steps)


class OpensForNobody(Rows):
    def open_session(self, session: Session, writer: Writer = NOBODY) -> Session:
        self.sessions[session.id] = session
        return session


class ReadsWhatIsShown(MemoryJournal):
    async def said(self, session_id: str, turn_id: str) -> list[Entry]:
        first = self._rows.session(session_id).first_seq
        found = await super().said(session_id, turn_id)
        return [each for each in found if each.seq >= first]


class ReadsAll(MemoryJournal):
    async def said(self, session_id: str, turn_id: str) -> list[Entry]:
        return self._rows.spoken(session_id)


class WaitsToBeAsked(MemoryJournal):
    def keep_late(self, step: Step) -> None:
        self._late[step.turn_id] = step


class IsHeldUp(MemoryJournal):
    def keep_late(self, step: Step) -> None:
        if self._late:
            self._late[step.turn_id] = step
        else:
            super().keep_late(step)


class ForgetsWhatIsLate(MemoryJournal):
    def keep_late(self, step: Step) -> None:
        return


class GivesUp(MemoryJournal):
    async def close_late(self, session_id: str) -> None:
        with suppress(LookupError):
            await super().close_late(session_id)


class GivesUpAfterOne(MemoryJournal):
    async def close_late(self, session_id: str) -> None:
        try:
            await super().close_late(session_id)
        except LookupError:
            self._late.clear()
            raise


class HoldsUpOtherSessions(MemoryJournal):
    async def close_late(self, session_id: str) -> None:
        for step in [*self._late.values()]:
            await super().close_late(step.session_id)


class RunsForEver(MemoryJournal):
    def keep_late(self, step: Step) -> None:
        self._late[step.turn_id] = step

    def _interrupt(self, writer: Writer) -> int:
        return 0


class InterruptsAll(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        for id_, turn in self._rows.turns.items():
            changed = replace(turn, state=TurnState.INTERRUPTED)
            self._rows.turns[id_] = changed
        return 1


class CountsThemAgain(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        super()._interrupt(writer)
        turns = self._rows.turns.values()
        return sum(each.state is TurnState.INTERRUPTED for each in turns)


class OneEpoch(MemoryJournal):
    async def enter(self, node: str) -> Writer:
        return replace(await super().enter(node), epoch=1)


class MarksWhatOthersRun(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        for turn in self._rows.holders:
            self._rows.holders[turn] = NOBODY
        return super()._interrupt(writer)


class EndsWhatOthersOpened(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        self._rows.openers.clear()
        return super()._interrupt(writer)


class MarksWhatItRuns(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        return super()._interrupt(replace(writer, epoch=writer.epoch + 1))


class LetsAnybodyGoOn(MemoryJournal):
    def _check_held(self, turn_id: str, writer: Writer) -> None:
        return


class LetsTheFirstGoOn(MemoryJournal):
    def _reopen(self, step: Step) -> None:
        super()._reopen(step)
        self._kept = self._rows.holders[step.turn_id]

    def _begin(self, step: Step) -> None:
        super()._begin(step)
        if step.reopened:
            self._rows.holders[step.turn_id] = self._kept


class LetsThePastBegin(MemoryJournal):
    def _check_current(self, writer: Writer) -> None:
        return


class EndsAgain(MemoryJournal):
    def _check_unended(self, turn_id: str) -> None:
        return


class HoldsWhatWaits(MemoryJournal):
    def _close(self, step: Step, closed: TurnRecord) -> None:
        super()._close(step, closed)
        self._rows.holders[step.turn_id] = step.writer


class KeepsNothingBeside(MemoryJournal):
    def keep(self, *steps: Step) -> asyncio.Future[None]:
        return super().keep(*(replace(step, also=None) for step in steps))


class HoldsNothing(MemoryJournal):
    def line_up(self, *asked: Any) -> MemoryPlace:
        return super().line_up(str(uuid4()), *asked[1:])


class OneLine(MemoryJournal):
    def line_up(self, *asked: Any) -> MemoryPlace:
        return super().line_up("all", *asked[1:])


class KeepsWhoLeaves(MemoryJournal):
    def line_up(self, *asked: Any) -> MemoryPlace:
        class Stays(MemoryPlace):
            def leave(self) -> None:
                if self._line()[:1] == (self,):
                    super().leave()

        return Stays(self._rows, *asked)


class LeavesLines(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        lines = dict(self._rows.places)
        marked = super()._interrupt(writer)
        self._rows.places.update(lines)
        return marked


class SeesNoRing(MemoryJournal):
    def line_up(self, *asked: Any) -> MemoryPlace:
        return super().line_up(*asked[:3])


HERE = TestAJournalInMemory()
HURRIED = TestAJournalInMemory()
HURRIED.patience = 0.05
"""For what would be waited for in vain, however long."""

BREACHES: tuple[tuple[type[MemoryJournal | Rows], Any], ...] = (
    (WritesNoStart, HERE.test_a_turn_is_journalled_step_by_step),
    (KeepsNothingBeside, HERE.test_what_goes_with_a_step_is_written_or_nothing_is),
    (LosesTheDigest, HERE.test_a_turn_is_journalled_step_by_step),
    (LosesSettings, HERE.test_what_is_asked_of_answers_is_kept),
    (BooksNothing, HERE.test_a_turn_is_journalled_step_by_step),
    (MakesUpTurns, HERE.test_nobody_knows_a_turn_that_never_began),
    (OneByOne, HERE.test_steps_are_written_wholly_or_not_at_all),
    (KeepsWhenAwaited, HERE.test_steps_are_written_awaited_or_not),
    (TheLastWriterWins, HERE.test_two_writers_of_a_session_collide_on_the_number),
    (TheNextNumberIsFree, HERE.test_two_writers_of_a_session_collide_on_the_number),
    (MakesTheSession, HERE.test_a_step_of_a_deleted_session_leaves_no_trace),
    (OneByOne, HERE.test_a_step_of_a_deleted_session_leaves_no_trace),
    (LosesErrors, HERE.test_how_a_turn_ended_is_kept),
    (LosesLabels, HERE.test_how_a_turn_ended_is_kept),
    (IntendsAll, HERE.test_an_answer_that_ends_its_turn_intends_no_call),
    (KnowsAllEnds, HERE.test_a_turn_that_broke_off_does_not_know_how_its_calls_ended),
    (
        AbandonsWhatIsIntended,
        HERE.test_a_turn_that_broke_off_does_not_know_how_its_calls_ended,
    ),
    (SaysAllWhole, HERE.test_a_turn_that_broke_off_does_not_know_how_its_calls_ended),
    (TakesWordsForEnds, HERE.test_a_call_whose_end_nobody_saw_is_unknown),
    (LosesOutcomes, HERE.test_what_a_call_gave_is_written_before_the_next_begins),
    (BelievesOutcomes, HERE.test_what_a_call_gave_is_written_before_the_next_begins),
    (WashesOutcomes, HERE.test_what_a_call_gave_is_written_before_the_next_begins),
    (AsksAgain, HERE.test_a_waiting_turn_keeps_the_words_of_the_calls_that_ended),
    (
        TakesWordsForEnds,
        HERE.test_a_waiting_turn_keeps_the_words_of_the_calls_that_ended,
    ),
    (
        InterruptsWhoWaits,
        HERE.test_a_waiting_turn_keeps_the_words_of_the_calls_that_ended,
    ),
    (LeavesWhatBrokeOff, HERE.test_a_turn_that_goes_on_takes_back_what_it_was_saying),
    (KeepsTheError, HERE.test_a_turn_that_goes_on_takes_back_what_it_was_saying),
    (CountsWhatIsGone, HERE.test_a_turn_that_goes_on_takes_back_what_it_was_saying),
    (GivesNumbersAgain, HERE.test_a_turn_that_goes_on_takes_back_what_it_was_saying),
    (AtTheEnd, HERE.test_a_turn_that_goes_on_stands_in_its_own_place),
    (LeavesItsOwn, HERE.test_a_turns_own_session_is_gone_when_the_turn_is_closed),
    (
        ForgetsToBookItsOwn,
        HERE.test_a_turns_own_session_is_gone_when_the_turn_is_closed,
    ),
    (EndsWhatHasAKey, HERE.test_a_turns_own_session_with_a_key_stays),
    (
        EndsWhatHasAKey,
        HERE.test_a_turns_own_session_that_gets_a_key_at_its_end_stays,
    ),
    (WritesAtTheEnd, HERE.test_an_effect_in_a_turns_own_session_is_journalled),
    (OpensForNobody, HERE.test_a_turns_own_session_is_not_begun_for_a_deleted_agent),
    (ReadsWhatIsShown, HERE.test_what_was_said_in_a_turn_is_read_when_it_is_summarised),
    (ReadsAll, HERE.test_what_was_said_in_a_turn_is_read_when_it_is_summarised),
    (WaitsToBeAsked, HURRIED.test_a_late_step_is_written_once_the_store_takes_it),
    (IsHeldUp, HURRIED.test_a_late_step_is_written_once_the_store_takes_it),
    (ForgetsWhatIsLate, HERE.test_a_late_step_is_written_before_its_sessions_next_turn),
    (GivesUp, HERE.test_a_late_step_that_cannot_be_written_is_told),
    (GivesUpAfterOne, HERE.test_a_late_step_that_cannot_be_written_is_told),
    (HoldsUpOtherSessions, HERE.test_a_late_step_that_cannot_be_written_is_told),
    (RunsForEver, HERE.test_what_is_late_at_the_end_is_closed_at_the_next_start),
    (InterruptsAll, HERE.test_a_start_marks_what_was_left_running),
    (OneEpoch, HERE.test_each_start_of_a_node_is_an_epoch_of_its_own),
    (
        HoldsNothing,
        HERE.test_a_session_is_held_in_the_order_in_which_it_was_asked_for,
    ),
    (OneLine, HURRIED.test_sessions_do_not_wait_for_each_other),
    (KeepsWhoLeaves, HURRIED.test_who_leaves_the_line_holds_up_nobody),
    (
        LeavesLines,
        HURRIED.test_a_start_takes_earlier_ones_of_its_node_out_of_the_line,
    ),
    (SeesNoRing, HURRIED.test_what_would_wait_for_itself_is_refused),
    (MarksWhatOthersRun, HERE.test_a_start_leaves_the_turns_of_other_nodes_alone),
    (EndsWhatOthersOpened, HERE.test_a_start_leaves_the_turns_of_other_nodes_alone),
    (LetsAnybodyGoOn, HERE.test_a_later_start_has_what_an_earlier_one_left),
    (LetsThePastBegin, HERE.test_a_later_start_has_what_an_earlier_one_left),
    (MarksWhatItRuns, HERE.test_a_start_marks_nothing_that_it_began_itself),
    (LetsAnybodyGoOn, HERE.test_a_turn_that_was_taken_over_refuses_the_first),
    (LetsTheFirstGoOn, HERE.test_a_turn_that_was_taken_over_refuses_the_first),
    (EndsAgain, HERE.test_a_turn_ends_once),
    (HoldsWhatWaits, HERE.test_a_turn_that_waits_is_anybodys),
    (CountsThemAgain, HERE.test_a_start_marks_what_was_left_running),
    (KnowsAllEnds, HERE.test_a_start_marks_what_was_left_running),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_a_broken_journal_is_found(
    broken: type[MemoryJournal | Rows], test: Any
) -> None:
    await finds_broken(broken, test)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(JournalContract)
