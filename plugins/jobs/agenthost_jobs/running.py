"""A job as its handler sees it: what to do, and steps that happen once."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from agenthost import Clock, Job, Json, StorageFull, Store, Unavailable

from .rows import written

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

RETRY_AFTER = 1.0


class EmbeddedRun:
    """One run of a job.

    Args:
        job: The job as it was claimed.
        outputs: JSON texts of the steps that earlier runs finished, by name.
        durably: Commits a write function, waiting out a full or locked disk.
    """

    def __init__(
        self, job: Job, outputs: Mapping[str, str], durably: DurableWrite
    ) -> None:
        self.job = job
        self.payload = job.payload
        self._outputs = dict(outputs)
        self._durably = durably

    async def step(
        self,
        name: str,
        work: Callable[[], Awaitable[Json]],
        rows: Callable[[Connection, Json], None] | None = None,
    ) -> Json:
        """Do a piece of work once, however often the job runs.

        A crash between the work and its commit repeats the work: give effects on the
        outside a key made of the job's id and the step's name.

        Args:
            name: Unique within the job, the same in every run.
            work: Called when no earlier run has finished this step.
            rows: Called as ``rows(connection, output)`` in the transaction that
                remembers the output; it may run twice and commits once.

        Returns:
            The output, as JSON gives it back.

        Raises:
            Superseded: The job was cancelled or runs again; nothing was committed.
            InvalidInput: The output is not JSON.
        """
        if name not in self._outputs:
            from .writes import remember

            output = written(f"output of step {name!r}", await work())
            keep = partial(remember, job=self.job, name=name, output=output, rows=rows)
            await self._durably(keep)
            self._outputs[name] = output
        return json.loads(self._outputs[name])


class DurableWrite:
    """Commits a function however long the storage needs."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def __call__(self, fn: Callable[[Connection], T]) -> T:
        """Commit, trying again while the disk is full or locked.

        An attempt that failed may have been committed, so ``fn`` must bear that.
        """
        while True:
            try:
                return await self._store.write(fn)
            except (Unavailable, StorageFull):
                await self._clock.sleep(RETRY_AFTER)
