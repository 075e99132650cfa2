"""The contract of conversations holds for those in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from agenthost import (
    ALL_SESSIONS,
    Conflict,
    Conversation,
    Entry,
    InvalidInput,
    Message,
    NotFound,
    Session,
    SessionFilter,
    Spent,
    Step,
    Text,
    TurnRecord,
    Writer,
)
from agenthost.testing import SessionsContract
from agenthost.testing.ports.memory_records.journal import MemoryJournal
from agenthost.testing.ports.memory_records.rows import Rows
from agenthost.testing.ports.memory_records.sessions import Entries, MemorySessions

from ..finding import names_in, names_of
from .broken import InMemory, finds_broken
from .broken_views import OF_VIEWS

Sessions = Sequence[Session]
NOBODY = frozenset[str]()


class TestSessionsInMemory(InMemory, SessionsContract):
    """They keep every promise."""


class Opens(MemorySessions):
    """Opens sessions in another way."""

    async def open(
        self, agent_id: str, key: str | None = None, *, ephemeral: bool = False
    ) -> Session:
        return await self.opened(agent_id, key, ephemeral=ephemeral)

    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        return await super().open(agent_id, key, ephemeral=ephemeral)

    def fresh(self, agent_id: str, key: str | None = None, **facts: Any) -> Session:
        now = self._clock.time()
        made = Session(str(uuid4()), agent_id, now, key=key, updated_at=now, **facts)
        self._rows.sessions[made.id] = made
        return made


class OpensEachTime(Opens):
    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        return self.fresh(agent_id, key, ephemeral=ephemeral)


class LooksTooEarly(Opens):
    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        found = self._rows.by_key(agent_id, key)
        await asyncio.sleep(0)
        return found or self.fresh(agent_id, key, ephemeral=ephemeral)


class SharesKeys(Opens):
    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        for session in self._rows.sessions.values():
            if key and session.key == key:
                return session
        return await super().opened(agent_id, key, ephemeral=ephemeral)


class OneForAll(Opens):
    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        return await super().opened(agent_id, key or "none", ephemeral=ephemeral)


class TakesAnyKey(Opens):
    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        with suppress(InvalidInput):
            return await super().opened(agent_id, key, ephemeral=ephemeral)
        return self.fresh(agent_id, key)


class OpensForNobody(Opens):
    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        with suppress(NotFound):
            return await super().opened(agent_id, key, ephemeral=ephemeral)
        return self.fresh(agent_id, key)


class GivesWhatIsThere(Opens):
    async def opened(
        self, agent_id: str, key: str | None, *, ephemeral: bool
    ) -> Session:
        with suppress(Conflict):
            return await super().opened(agent_id, key, ephemeral=ephemeral)
        return await super().opened(agent_id, key, ephemeral=not ephemeral)


class RestsWithItsKey(Rows):
    def by_key(self, agent_id: str, key: str | None) -> Session | None:
        for session in self.sessions.values():
            if (session.agent_id, session.key) == (agent_id, key or ""):
                return session
        return None


class TakesOutRegardless(Rows):
    def take_out(self, session_id: str) -> None:
        self.change_session(session_id, archived_at=None)


class LeavesWhatIsFleeting(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        return 0


class EndsEveryRun(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        found = self._rows.sessions.values()
        self._rows.erase_sessions([each.id for each in found if each.ephemeral])
        return 0


class EndsEveryKeylessSession(MemoryJournal):
    def _interrupt(self, writer: Writer) -> int:
        found = self._rows.sessions.values()
        self._rows.erase_sessions([each.id for each in found if each.key is None])
        return 0


class ReadByAnybody(MemorySessions):
    async def get(self, session_id: str, agent_id: str = "") -> Session:
        return await super().get(session_id)


class MakesUpSessions(MemorySessions):
    async def of_agent(self, agent_id: str) -> Session:
        with suppress(NotFound):
            return await super().of_agent(agent_id)
        return Session("made-up", agent_id, 0.0)


class RestsSinceTheLastTime(MemorySessions):
    async def archive(self, session_id: str, *, on: bool = True) -> None:
        await super().archive(session_id, on=on)
        if on:
            self._rows.change_session(session_id, archived_at=self._clock.time())


class EmptiesTheArchive(MemorySessions):
    async def archive(self, session_id: str, *, on: bool = True) -> None:
        await super().archive(session_id, on=on)
        for at in [each for each in self._rows.messages if each[0] == session_id]:
            del self._rows.messages[at]


class DoesAnythingToOnesOwn(MemorySessions):
    def _refuse_own(self, session_id: str) -> None:
        return


class KeepsTheFirstTitle(MemorySessions):
    async def rename(self, session_id: str, title: str) -> None:
        if not (await self.get(session_id)).title:
            await super().rename(session_id, title)


class NamesItByTheLastMessage(Rows):
    def append(self, step: Step, message: Message) -> None:
        super().append(step, message)
        self.change_session(step.session_id, title=message.text)


class ChangesNothingQuietly(MemorySessions):
    async def rename(self, session_id: str, title: str) -> None:
        with suppress(NotFound):
            await super().rename(session_id, title)


class ThinksEverywhere(MemorySessions):
    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        for each in [*self._rows.sessions]:
            await super().set_thinking(each, on=on)


class NeverStopsThinking(MemorySessions):
    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        before = await self.get(session_id)
        await super().set_thinking(session_id, on=on or before.thinking)


class LeavesTurns(MemorySessions):
    async def erase(self, session_id: str) -> None:
        before = dict(self._rows.turns)
        await super().erase(session_id)
        self._rows.turns.update(before)


class LeavesMessages(MemorySessions):
    async def erase(self, session_id: str) -> None:
        before = dict(self._rows.messages)
        await super().erase(session_id)
        self._rows.messages.update(before)


class TakesAllTurns(MemorySessions):
    async def erase(self, session_id: str) -> None:
        await super().erase(session_id)
        self._rows.turns.clear()


class HandsOutTwice(MemorySessions):
    def take(self, session_id: str) -> Conversation | None:
        self._stale.discard(session_id)
        return self._known.get(session_id)


class ForgetsNothing(MemorySessions):
    def forget(self, session_id: str) -> None:
        return


class ForgetsForNowAlone(MemorySessions):
    def forget(self, session_id: str) -> None:
        self._known.pop(session_id, None)


class SaysNothingOfAChange(MemorySessions):
    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        self._rows.change_session(session_id, thinking=on)


class KeepsTextAlone(Rows):
    def append(self, step: Step, message: Message) -> None:
        text = replace(message, parts=(Text(message.text),))
        super().append(step, text)


class LosesLabels(Rows):
    def append(self, step: Step, message: Message) -> None:
        super().append(replace(step, labels=NOBODY), message)


class LosesTurns(Rows):
    def append(self, step: Step, message: Message) -> None:
        super().append(replace(step, turn_id=""), message)


class TellsOfAllTurns(MemorySessions):
    async def turns(self, session_id: str) -> Mapping[str, TurnRecord]:
        return self._rows.turns


class LosesWhatItSummarises(MemorySessions):
    async def compact(
        self,
        session: Session,
        first_seq: int,
        summary: Message,
        spent: Spent | None = None,
    ) -> None:
        await super().compact(session, first_seq, summary, spent)
        for seq in range(first_seq):
            self._rows.messages.pop((session.id, seq), None)


class ShowsBoth(MemorySessions):
    async def entries(self, session: Session) -> Entries:
        return self._rows.spoken(session.id)


class PutsTheSummaryLast(MemorySessions):
    async def history(self, session: Session) -> Conversation:
        known = await super().history(session)
        if session.summary is not None:
            known.messages.append(known.messages.pop(0))
        return known


class WashesLabels(MemorySessions):
    def _labels_behind(self, session_id: str) -> frozenset[str]:
        return NOBODY


class SummarisesRegardless(MemorySessions):
    async def compact(
        self,
        session: Session,
        first_seq: int,
        summary: Message,
        spent: Spent | None = None,
    ) -> None:
        now = self._rows.sessions.get(session.id, session)
        await super().compact(now, first_seq, summary, spent)


class SummarisesForNothing(MemorySessions):
    async def compact(
        self,
        session: Session,
        first_seq: int,
        summary: Message,
        spent: Spent | None = None,
    ) -> None:
        before = dict(self._rows.spent)
        try:
            await super().compact(session, first_seq, summary, spent)
        except Conflict:
            self._rows.spent = before
            raise


class Lists(MemorySessions):
    """Takes something else for what is wanted."""

    async def list(self, wanted: SessionFilter = ALL_SESSIONS) -> Sessions:
        return await super().list(self.taken(wanted))

    def taken(self, wanted: SessionFilter) -> SessionFilter:
        return wanted


class OldestFirst(Lists):
    def taken(self, wanted: SessionFilter) -> SessionFilter:
        return replace(wanted, newest=False)


class FromTheStart(Lists):
    def taken(self, wanted: SessionFilter) -> SessionFilter:
        return replace(wanted, after="")


class WithTheArchive(Lists):
    def taken(self, wanted: SessionFilter) -> SessionFilter:
        return replace(wanted, archived=None)


class WithoutLimit(Lists):
    def taken(self, wanted: SessionFilter) -> SessionFilter:
        return replace(wanted, limit=0)


class OfAllAgents(Lists):
    def taken(self, wanted: SessionFilter) -> SessionFilter:
        return replace(wanted, agent_id="")


class WithWhatIsFleeting(MemorySessions):
    async def list(self, wanted: SessionFilter = ALL_SESSIONS) -> Sessions:
        found = await super().list(wanted)
        all_ = self._rows.sessions.values()
        return [*found, *(each for each in all_ if each.ephemeral)]


class WithTheSummary(MemorySessions):
    async def list(self, wanted: SessionFilter = ALL_SESSIONS) -> Sessions:
        found = await super().list(wanted)
        return [self._rows.sessions[each.id] for each in found]


class AnyWord(MemorySessions):
    def _has(self, session: Session, text: str) -> bool:
        return any(super(AnyWord, self)._has(session, word) for word in text.split())


class HereAndThere(MemorySessions):
    def _has(self, session: Session, text: str) -> bool:
        return all(
            super(HereAndThere, self)._has(session, word) for word in text.split()
        )


class InThisCase(MemorySessions):
    def _has(self, session: Session, text: str) -> bool:
        return text == text.casefold() and super()._has(session, text)


class ByPatterns(MemorySessions):
    def _has(self, session: Session, text: str) -> bool:
        return "_" in text or super()._has(session, text)


class LeavesWhatBrokeOff(MemoryJournal):
    def _reopen(self, step: Step) -> None:
        return


class Forks(MemorySessions):
    """Forks in another way."""

    def _fork(self, session: Session, before: int | None) -> Session:
        made = super()._fork(session, before)
        self._rows.sessions[made.id] = self.forked(made, session)
        return self._rows.sessions[made.id]

    def forked(self, made: Session, origin: Session) -> Session:
        return made


class ForksBehindTheMessage(MemorySessions):
    def _fork(self, session: Session, before: int | None) -> Session:
        behind = None if before is None else before + 1
        return replace(super()._fork(session, behind), at_message=before)


class ForgetsItsOrigin(Forks):
    def forked(self, made: Session, origin: Session) -> Session:
        return replace(made, parent_id=None)


class TakesTheTitleAlong(Forks):
    def forked(self, made: Session, origin: Session) -> Session:
        return replace(made, title=origin.title)


class TakesTheKeyAlong(Forks):
    def forked(self, made: Session, origin: Session) -> Session:
        return replace(made, key=origin.key)


class TakesTheWordsAway(Forks):
    def forked(self, made: Session, origin: Session) -> Session:
        for seq in range(made.next_seq):
            del self._rows.messages[origin.id, seq]
        return made


class ForksAllForNothing(MemorySessions):
    def _fork(self, session: Session, before: int | None) -> Session:
        with suppress(NotFound):
            return super()._fork(session, before)
        return super()._fork(session, None)


class ForksWhatIsGone(MemorySessions):
    def _fork(self, session: Session, before: int | None) -> Session:
        self._rows.sessions.setdefault(session.id, session)
        return super()._fork(session, before)


class WashesForks(Forks):
    def forked(self, made: Session, origin: Session) -> Session:
        self._rows.behind_summary.clear()
        return made


class ForksTheSummaryAlways(MemorySessions):
    def _fork(self, session: Session, before: int | None) -> Session:
        first = session.first_seq
        early = before is not None and before < first
        return super()._fork(session, first if early else before)


class TakesEveryTurnAlong(MemorySessions):
    def _copy_of(self, entry: Entry, seq: int) -> Entry:
        return replace(entry, seq=seq, place=seq)


class TakesNoTurnAlong(MemorySessions):
    def _copy_of(self, entry: Entry, seq: int) -> Entry:
        return replace(super()._copy_of(entry, seq), turn_id=None)


class TakesTurnsFromForks(Rows):
    def erase_sessions(self, ids: Iterable[str]) -> None:
        for session_id in ids:
            self._forget_turns({each.turn_id or "" for each in self.spoken(session_id)})
            super().erase_sessions([session_id])


class CopiesInTheOrderOfWriting(MemorySessions):
    def _fork(self, session: Session, before: int | None) -> Session:
        for at, each in self._rows.messages.items():
            self._rows.messages[at] = replace(each, place=each.seq)
        return super()._fork(session, before)


class CopiesNumbers(MemorySessions):
    def _copy_of(self, entry: Entry, seq: int) -> Entry:
        return replace(super()._copy_of(entry, seq), seq=entry.seq)


HERE = TestSessionsInMemory()
OF_KEYS = (
    (OpensEachTime, HERE.test_a_key_asked_for_twice_at_once_is_the_same_session),
    (LooksTooEarly, HERE.test_a_key_asked_for_twice_at_once_is_the_same_session),
    (SharesKeys, HERE.test_a_key_is_its_agents_own),
    (OneForAll, HERE.test_without_a_key_every_session_is_new),
    (TakesAnyKey, HERE.test_a_key_has_its_form),
    (OpensForNobody, HERE.test_nobody_opens_a_session_of_no_agent),
    (GivesWhatIsThere, HERE.test_what_is_to_stay_is_no_ephemeral_session),
    (RestsWithItsKey, HERE.test_an_archived_session_has_let_go_of_its_key),
    (TakesOutRegardless, HERE.test_an_archived_session_has_let_go_of_its_key),
)
OF_ENDS = tuple(
    (
        broken,
        HERE.test_an_ephemeral_session_without_a_key_is_gone_at_the_next_start,
    )
    for broken in (LeavesWhatIsFleeting, EndsEveryRun, EndsEveryKeylessSession)
)
OF_ROWS = (
    (ReadByAnybody, HERE.test_a_session_is_read_by_its_own_agent),
    (MakesUpSessions, HERE.test_a_session_is_read_by_its_own_agent),
    (RestsSinceTheLastTime, HERE.test_an_archived_session_only_rests),
    (EmptiesTheArchive, HERE.test_an_archived_session_only_rests),
    (
        DoesAnythingToOnesOwn,
        HERE.test_an_agents_own_session_is_neither_archived_nor_erased,
    ),
    (KeepsTheFirstTitle, HERE.test_a_title_is_the_beginning_until_it_is_renamed),
    (NamesItByTheLastMessage, HERE.test_a_title_is_the_beginning_until_it_is_renamed),
    (ChangesNothingQuietly, HERE.test_a_session_that_is_not_there_is_not_changed),
    (ThinksEverywhere, HERE.test_thinking_is_switched_on_and_off),
    (NeverStopsThinking, HERE.test_thinking_is_switched_on_and_off),
    (LeavesTurns, HERE.test_an_erased_session_goes_with_its_messages_and_turns),
    (LeavesMessages, HERE.test_an_erased_session_goes_with_its_messages_and_turns),
    (TakesAllTurns, HERE.test_an_erased_session_goes_with_its_messages_and_turns),
    (HandsOutTwice, HERE.test_what_a_turn_gives_back_is_taken_as_it_was_or_read),
    (ForgetsNothing, HERE.test_what_is_forgotten_is_read_anew),
    (ForgetsForNowAlone, HERE.test_what_is_forgotten_is_read_anew),
    (SaysNothingOfAChange, HERE.test_no_change_is_hidden_by_what_was_given_back),
)
OF_WORDS = (
    (KeepsTextAlone, HERE.test_messages_come_back_as_they_were_said),
    (LosesLabels, HERE.test_messages_come_back_as_they_were_said),
    (LosesTurns, HERE.test_messages_come_back_as_they_were_said),
    (TellsOfAllTurns, HERE.test_the_turns_of_a_session_are_those_that_spoke_in_it),
    (LosesWhatItSummarises, HERE.test_a_summary_stands_for_what_is_before_it),
    (ShowsBoth, HERE.test_a_summary_stands_for_what_is_before_it),
    (PutsTheSummaryLast, HERE.test_a_summary_stands_for_what_is_before_it),
    (WashesLabels, HERE.test_a_summary_has_the_labels_of_what_it_stands_for),
    (SummarisesRegardless, HERE.test_a_summary_of_what_has_changed_is_refused),
    (SummarisesForNothing, HERE.test_a_summary_of_what_has_changed_is_refused),
)
OF_LISTS = (
    (OldestFirst, HERE.test_a_list_is_filtered_ordered_and_paged),
    (FromTheStart, HERE.test_a_list_is_filtered_ordered_and_paged),
    (WithTheArchive, HERE.test_a_list_is_filtered_ordered_and_paged),
    (WithoutLimit, HERE.test_a_list_is_filtered_ordered_and_paged),
    (OfAllAgents, HERE.test_a_list_is_filtered_ordered_and_paged),
    (WithWhatIsFleeting, HERE.test_an_ephemeral_session_is_in_no_list),
    (WithTheSummary, HERE.test_a_list_has_rows_without_their_summary),
    (AnyWord, HERE.test_words_are_found_in_a_title_or_in_one_message),
    (HereAndThere, HERE.test_words_are_found_in_a_title_or_in_one_message),
    (InThisCase, HERE.test_words_are_found_in_a_title_or_in_one_message),
    (ByPatterns, HERE.test_words_are_found_in_a_title_or_in_one_message),
    (LeavesWhatBrokeOff, HERE.test_what_broke_off_and_was_said_anew_is_not_found),
)
OF_FORKS = (
    (ForksBehindTheMessage, HERE.test_a_fork_begins_with_what_stands_before_a_message),
    (ForgetsItsOrigin, HERE.test_a_fork_begins_with_what_stands_before_a_message),
    (TakesTheWordsAway, HERE.test_a_fork_begins_with_what_stands_before_a_message),
    (TakesTheTitleAlong, HERE.test_a_fork_of_all_and_one_of_nothing),
    (
        TakesTheKeyAlong,
        HERE.test_an_archived_session_is_forked_and_the_fork_is_not_archived,
    ),
    (
        ForksAllForNothing,
        HERE.test_nothing_is_forked_before_a_message_that_is_not_there,
    ),
    (ForksWhatIsGone, HERE.test_a_session_that_was_deleted_meanwhile_is_not_forked),
    (WashesForks, HERE.test_a_fork_begins_with_the_summary_or_before_it),
    (ForksTheSummaryAlways, HERE.test_a_fork_begins_with_the_summary_or_before_it),
    (TakesEveryTurnAlong, HERE.test_a_turn_without_a_whole_answer_is_not_the_forks),
    (TakesNoTurnAlong, HERE.test_a_turn_without_a_whole_answer_is_not_the_forks),
    (
        TakesTurnsFromForks,
        HERE.test_turns_stay_while_a_fork_or_its_original_shows_them,
    ),
    (LeavesTurns, HERE.test_turns_stay_while_a_fork_or_its_original_shows_them),
    (CopiesInTheOrderOfWriting, HERE.test_a_fork_has_each_turn_in_its_place),
    (CopiesNumbers, HERE.test_a_fork_has_each_turn_in_its_place),
)
BREACHES: tuple[tuple[type[Any], Any], ...] = (
    *OF_KEYS,
    *OF_ENDS,
    *OF_ROWS,
    *OF_WORDS,
    *OF_LISTS,
    *OF_FORKS,
    *OF_VIEWS,
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_sessions_are_found(broken: type[Any], test: Any) -> None:
    await finds_broken(broken, test)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(SessionsContract)
