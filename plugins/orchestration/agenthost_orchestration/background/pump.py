"""What hands due occasions to the queue: so many at once, none of a source's first.

A job that waits for a turn or a run takes a place of the queue, and runs need places
too. So no more jobs are submitted than may be done at once; what else is due stays a
row, however much it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import count

from agenthost import AgentHostError, Host, JobState, Row

KIND = "occasion"
TRY_AGAIN = 5.0
ENDED_JOBS = frozenset({JobState.FAILED, JobState.POISONED, JobState.CANCELLED})

log = logging.getLogger(__name__)

GiveUp = Callable[[str, str], Awaitable[None]]
Source = tuple[str, str]


class Pump:
    """Submits jobs, one for each occasion, as long as there is room.

    Args:
        host: The daemon.
        most: How many occasions are done at once.
        give_up: Called with an occasion, and why, when its job has ended without it.
    """

    def __init__(self, host: Host, most: int, give_up: GiveUp) -> None:
        self._host = host
        self._most = most
        self._give_up = give_up
        self._changed = asyncio.Event()
        self._in_flight: dict[str, Source] = {}
        # When each source of those that wait was begun last, as numbers that grow.
        self._begun = count(1)
        self._last: dict[Source, int] = {}
        self._answered: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with what is due already."""
        self._task = asyncio.create_task(self._run(), name="occasions")

    async def stop(self) -> None:
        """Submit no more; what is due is found by the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """Look at the rows again."""
        self._changed.set()

    def go_on(self, occasion_id: str) -> None:
        """Take up an occasion whose turn has ended that waited for a person."""
        self._answered.add(occasion_id)
        self._changed.set()

    def begun(self, occasion_id: str, source: Source) -> None:
        """Count an occasion whose job runs."""
        self._in_flight[occasion_id] = source
        self._last[source] = next(self._begun)

    def ended(self, occasion_id: str) -> None:
        """Make room."""
        self._in_flight.pop(occasion_id, None)
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._go_on_with_answered()
                await self._submit_due()
            except AgentHostError as error:
                log.warning("occasions are looked at again: %s", error.message)
                self._changed.set()
                await self._host.clock.sleep(TRY_AGAIN)

    async def _go_on_with_answered(self) -> None:
        for occasion_id in tuple(self._answered):
            # A key of its own: the first job of the occasion has ended.
            await self._submit(occasion_id, f"{occasion_id}:answered")
            self._answered.discard(occasion_id)

    async def _submit_due(self) -> None:
        from .tables import DUE

        while (room := self._most - len(self._in_flight)) > 0:
            limit = self._most + len(self._in_flight) + room
            rows = await self._host.store.read(DUE, {"limit": limit})
            fresh = [row for row in rows if row["id"] not in self._in_flight]
            if not fresh:
                return
            for row in self._next(fresh, room):
                self.begun(row["id"], _source(row))
                await self._submit(row["id"], row["id"])

    def _next(self, fresh: Sequence[Row], room: int) -> list[Row]:
        """Choose whose source has least before it, then whose has waited longest.

        By age alone a quick source of many would have every place that is free while
        a slow one is at work.
        """
        before, last = Counter(self._in_flight.values()), self._last
        waiting = {*map(_source, fresh)} | before.keys()
        self._last = last = {s: last[s] for s in waiting if s in last}
        places = {}
        for row in fresh:
            source = _source(row)
            places[row["id"]] = before[source], last.get(source, 0)
            before[source] += 1
        chosen = sorted(fresh, key=lambda row: places[row["id"]])
        return chosen[:room]

    async def resume(self, occasion_id: str, source: Source) -> None:
        """See that what a dead process was at has a job that goes on with it."""
        self.begun(occasion_id, source)
        await self._submit(occasion_id, occasion_id)

    async def _submit(self, occasion_id: str, key: str) -> None:
        jobs = self._host.jobs
        try:
            job = await jobs.get(
                await jobs.submit(KIND, key, {"occasion": occasion_id})
            )
        except AgentHostError:
            self._in_flight.pop(occasion_id, None)
            raise
        if job.state in ENDED_JOBS:
            reason = job.error or f"its job was {job.state}"
            await self._give_up(occasion_id, reason)
            self.ended(occasion_id)


def _source(row: Row) -> Source:
    return row["source"], row["source_id"]
