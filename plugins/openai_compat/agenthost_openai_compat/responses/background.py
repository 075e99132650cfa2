"""Responses that nobody waits for: each a job, each owner's in turn."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from agenthost import (
    AgentHostError,
    Host,
    JobState,
    Json,
    RunningJob,
)

if TYPE_CHECKING:
    from .draft import Draft
    from .rows import Stored
    from .worker import Worker

KIND = "openai_response"
ATTEMPTS = 4
"""Runs of a job; the last only says that those before it died."""
MOST = 8
"""Responses that are made at once: each takes a place of the queue while it is."""
TRY_AGAIN = 5.0
LEFT_OPEN = "SELECT id FROM openai_responses WHERE ended_at IS NULL LIMIT 1"
"""What a start asks, before any of the tables is imported."""
ENDED_JOBS = frozenset({JobState.FAILED, JobState.POISONED, JobState.CANCELLED})

log = logging.getLogger(__name__)


class Background:
    """Makes responses that nobody waits for, also after a restart.

    Args:
        host: The daemon.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._made: Worker | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take up what the last process left."""
        self._host.jobs.register(KIND, self._run, ATTEMPTS)
        if await self._host.store.first(LEFT_OPEN) is not None:
            await self._take_up()
            self._changed.set()
        self._task = asyncio.create_task(self._pump(), name=KIND)

    async def stop(self) -> None:
        """Begin nothing more; what is under way is taken up by the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def add(self, draft: Draft, turn_id: str, labels: frozenset[str]) -> None:
        """Keep a response that is to be made; the same twice is one.

        Raises:
            Unavailable: Its owner has too many that wait.
        """
        from .draft import id_of
        from .rows import labels_text
        from .writes import add

        assert draft.row is not None  # noqa: S101 - what is made later is kept
        known = {"id": id_of(turn_id), "status": "queued"}
        row = {**draft.row, **known, "labels": labels_text(labels)}
        await self._host.store.write(partial(add, row=row))
        self._changed.set()

    async def cancel(self, stored: Stored) -> None:
        """End one that has not ended; what is being made is stopped."""
        await self._worker.cancel(stored)
        # It may wait still: then its job ends before it has begun.
        await self._host.jobs.cancel(await self._submit(stored.id))
        self._changed.set()

    @property
    def _worker(self) -> Worker:
        """What makes them; it is made when the first is to be made."""
        if self._made is None:
            from .service import keeping_of
            from .worker import Worker

            self._made = Worker(self._host, keeping_of(self._host).live, ATTEMPTS)
        return self._made

    async def _pump(self) -> None:
        """Hand to the queue what waits, as long as there is room."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._submit_waiting()
            except AgentHostError as error:
                log.warning("responses are looked at again: %s", error.message)
                self._changed.set()
                await self._host.clock.sleep(TRY_AGAIN)

    async def _submit_waiting(self) -> None:
        from .tables import DUE, RUNNING
        from .writes import begin

        store = self._host.store
        running = await store.first(RUNNING)
        room = MOST - (running["running"] if running else 0)
        if room <= 0:
            return
        for row in await store.read(DUE, {"limit": room}):
            # The other way round, a crash between the two would leave it behind.
            await self._submit(row["id"])
            await store.write(partial(begin, known=row["id"]))

    async def _submit(self, known: str) -> str:
        return await self._host.jobs.submit(KIND, known, {"response": known})

    async def _take_up(self) -> None:
        """See that what was being made has a job that goes on with it."""
        from .tables import BEGUN

        for row in await self._host.store.read(BEGUN):
            job = await self._host.jobs.get(await self._submit(row["id"]))
            if job.state in ENDED_JOBS:
                await self._worker.give_up(row["id"])

    async def _run(self, job: RunningJob) -> Json:
        try:
            await self._worker.run(job)
        finally:
            self._changed.set()
        return None
