"""What makes a response that nobody waits for: its turn, with the rights of now."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any
from uuid import UUID

from agenthost import (
    AgentHostError,
    Context,
    Host,
    Interrupted,
    RunningJob,
    Superseded,
    Turn,
    TurnFailed,
    TurnState,
    Unavailable,
    Waiting,
)

from .draft import Draft, Ending, answered, fault_of
from .live import Live
from .making import Start, start_of, with_id
from .rights import principal_of
from .rows import Stored, columns_of, images_of, stored_of
from .shapes import ResponseBody
from .tables import ANY
from .writes import end

LATER = 1.0
STOPPED = "the response was cancelled"
DIED = "the process died again and again while it was made"
LOST = "its job has ended without it"
FAULT = "it failed for an internal reason; the log says more"

log = logging.getLogger(__name__)


class Worker:
    """Makes responses.

    Args:
        host: The daemon.
        live: Keeps them when their turns end.
        attempts: The last run of a job makes nothing: those before it died.
    """

    def __init__(self, host: Host, live: Live, attempts: int) -> None:
        self._host = host
        self._live = live
        self._attempts = attempts

    async def run(self, job: RunningJob) -> None:
        """Make one, whatever comes of it; one that has ended stays as it is.

        Raises:
            Unavailable: It is to be tried again.
            Superseded: It is made elsewhere.
        """
        payload: Any = job.payload
        stored = await self._read(payload["response"])
        if stored is None or not stored.open:
            return
        try:
            if job.job.attempts < self._attempts:
                await self._make(stored)
            else:
                await self._fail(stored, TurnFailed(DIED))
        except Superseded:
            raise
        except AgentHostError as error:
            # The store may be back soon: the queue tries it again.
            if isinstance(error, Unavailable) and job.job.attempts + 1 < self._attempts:
                raise
            await self._fail(stored, error)
        except Exception:
            log.exception("response %s failed", stored.id)
            await self._fail(stored, TurnFailed(FAULT))

    async def cancel(self, stored: Stored) -> None:
        """Write that it was cancelled, unless it has ended."""
        await self._end(stored, Ending("cancelled", self._host.clock.time()))

    async def give_up(self, known: str) -> None:
        """End one whose job has ended without it."""
        stored = await self._read(known)
        if stored is not None:
            await self._fail(stored, TurnFailed(LOST))

    async def _read(self, known: str) -> Stored | None:
        row = await self._host.store.first(ANY, {"id": known})
        return None if row is None else stored_of(row)

    async def _make(self, stored: Stored) -> None:
        host = self._host
        start = await self._start(stored)
        # Its row is there: only that it is kept counts.
        row = {"background": 1}
        draft = Draft(stored.asked, stored.model, stored.created_at, row)
        turn = await self._turn(start, draft)
        result = await turn.result()
        if not turn.spoken:
            # It had ended before this run: what it said is on disk alone.
            entries = await host.journal.said(turn.id, turn.id)
            turn.recall([entry.message for entry in entries])
        at = host.clock.time()
        await self._end(stored, answered(draft, result.finish, result.usage, at))

    async def _start(self, stored: Stored) -> Start:
        host = self._host
        principal = await principal_of(host, stored.owner)
        context = Context(
            principal, labels=stored.labels, log_fields={"response_id": stored.id}
        )
        body = ResponseBody.model_validate({**stored.asked, "input": ""})
        agent = host.agents.get(stored.agent_id)
        given = stored.items, images_of(stored.remote)
        start = await start_of(host, context, agent, body, given)
        return with_id(start, str(UUID(stored.hex)), stored.digest)

    async def _turn(self, start: Start, draft: Draft) -> Turn:
        """Run its turn to the end, once there is room; the same id is the same turn."""
        while True:
            try:
                draft.turn = self._host.turns.start(*start)
            except Unavailable:
                await self._host.clock.sleep(LATER)
                continue
            draft.over.clear()
            self._live.begin(draft)
            try:
                await draft.turn.result()
            except Waiting:
                # Once a person has answered it is only closed: we have its history.
                await draft.over.wait()
                continue
            except Interrupted:
                # The daemon ends: the next start goes on with the same turn.
                await self._host.clock.sleep(LATER)
                continue
            except asyncio.CancelledError:
                # Whoever cancelled it has written that already; else it is taken up.
                draft.turn.cancel(STOPPED, TurnState.INTERRUPTED)
                raise
            finally:
                self._live.leave(draft)
            return draft.turn

    async def _fail(self, stored: Stored, error: AgentHostError) -> None:
        at = self._host.clock.time()
        await self._end(stored, Ending("failed", at, error=fault_of(error)))

    async def _end(self, stored: Stored, ending: Ending) -> None:
        """Write what came of it, unless that is written already."""
        row = columns_of(ending, stored.labels)
        await self._host.store.write(partial(end, known=stored.id, ending=row))
