"""One mailbox a session: turns, compactions and resets run one after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile

from agenthost import Host, RateLimited, SessionPlace, Turn, Work

WAITING_PER_SESSION = 64


class Mailboxes:
    """The mailboxes in use; one that nobody holds or waits for is forgotten.

    Args:
        host: Where other daemons share its rows, work stands in line with theirs too.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._shared = host.store.signals is not None
        # In order of arrival; the first holds the session, the others wait.
        self._queues: dict[str, list[tuple[Work, asyncio.Future[None]]]] = {}

    @asynccontextmanager
    async def hold(self, session_id: str, work: Work) -> AsyncIterator[None]:
        """Wait for the session in order of arrival and keep it.

        Raises:
            RateLimited: Too many already wait for this session.
            Superseded: This daemon stood still, and was taken for dead meanwhile.
            Conflict: It would wait for itself, over other daemons.
        """
        queue = self._queues.setdefault(session_id, [])
        if len(queue) >= WAITING_PER_SESSION:
            raise RateLimited(
                f"{len(queue)} turns already wait for this session; wait for one to end"
            )
        comes: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (work, comes)
        queue.append(entry)
        place: SessionPlace | None = None
        work.writer = self._host.writer
        try:
            if self._shared and not _alone(work):
                # Before anything is awaited: all stand in order of their arrival here.
                ids = session_id, work.id, work.writer, work.asked_by
                place = self._host.journal.line_up(*ids)
            if queue[0] is not entry:
                await comes
            if place is not None:
                await place.reached()
            yield
        finally:
            if place is not None:
                place.leave()
            first = queue[0] is entry
            queue.remove(entry)
            if not queue:
                self._queues.pop(session_id, None)
            # Also who was woken and cancelled in one moment hands the session on.
            elif first and not queue[0][1].done():
                queue[0][1].set_result(None)

    def ahead(self, session_id: str, work: Work | None = None) -> Sequence[Work]:
        """Who runs or waits in a session before ``work``; all when it is not there."""
        there = (each for each, _ in self._queues.get(session_id, ()))
        return list(takewhile(lambda each: each is not work, there))


def _alone(work: Work) -> bool:
    """Whether nothing else can ask for its session: it is new, and goes with it."""
    return (
        isinstance(work, Turn)
        and work.options.history is not None
        and work.options.turn_id is None
    )
