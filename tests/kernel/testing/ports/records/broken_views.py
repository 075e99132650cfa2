"""Conversations in memory that break what is promised of pins and of views."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agenthost import NotFound, Session
from agenthost.testing import SessionsContract
from agenthost.testing.ports.memory_records.sessions import Entries, MemorySessions


class PinsNothing(MemorySessions):
    """Finds the message and leaves it as it is."""

    async def pin(self, session_id: str, seq: int, *, on: bool = True) -> None:
        self._with_its_result(session_id, seq)


class PinsForEver(MemorySessions):
    """Takes no pin away."""

    async def pin(self, session_id: str, seq: int, *, on: bool = True) -> None:
        if on:
            await super().pin(session_id, seq)


class PinsOne(MemorySessions):
    """Parts a call from its result."""

    def _with_its_result(self, session_id: str, seq: int) -> Entries:
        return super()._with_its_result(session_id, seq)[:1]


class PinsWhatIsGone(MemorySessions):
    """Says nothing of a message that is not there."""

    async def pin(self, session_id: str, seq: int, *, on: bool = True) -> None:
        with suppress(NotFound):
            await super().pin(session_id, seq, on=on)


class LosesPins(MemorySessions):
    """Takes none into a fork."""

    def _fork(self, session: Session, before: int | None) -> Session:
        made = super()._fork(session, before)
        for known in [each for each in self._rows.pins if each[0] == made.id]:
            del self._rows.pins[known]
        return made


class TakesAllBack(MemorySessions):
    """Goes to the very first view at once."""

    async def restore(self, session: Session) -> bool:
        views = self._rows.views.get(session.id, ())
        self._rows.views[session.id] = views[:1]
        return await super().restore(session)


class TakesBackBlindly(MemorySessions):
    """Does not look whether the session is still what was read."""

    async def restore(self, session: Session) -> bool:
        return await super().restore(await self.get(session.id))


HERE: Any = SessionsContract
OF_VIEWS = (
    (PinsNothing, HERE.test_a_pinned_message_stands_whole_behind_the_summary),
    (PinsForEver, HERE.test_a_pinned_message_stands_whole_behind_the_summary),
    (PinsOne, HERE.test_a_pinned_call_goes_with_its_result),
    (PinsWhatIsGone, HERE.test_what_is_not_there_is_not_pinned),
    (LosesPins, HERE.test_pins_go_into_a_fork_and_end_with_their_session),
    (TakesAllBack, HERE.test_summaries_are_taken_back_one_by_one),
    (TakesBackBlindly, HERE.test_what_changed_since_it_was_read_is_not_taken_back),
)
