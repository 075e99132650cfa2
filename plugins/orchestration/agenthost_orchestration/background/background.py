"""The background work of one daemon: occasions are written, done, listed, cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agenthost import (
    Conflict,
    Context,
    Host,
    Json,
    RunningJob,
    Unavailable,
)

from .errands import Occasion, OccasionState, Source
from .rows import ANY_OPEN, Kept, kept_of, occasion_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .pump import Pump
    from .retention import Retention
    from .runner import Library, Runner
    from .waits import Waits
    from .worker import Worker

PAGE = 100
ATTEMPTS = 4
"""Runs of a job; the last only says that those before it died."""


class Background:
    """Does what triggers and schedules have found due, each occasion once.

    Attributes:
        runs: What runs workflows, once it is there.
        workflows: Where workflows are read.
    """

    def __init__(self) -> None:
        self.runs: Runner | None = None
        self.workflows: Library | None = None
        self._sources: dict[str, Source] = {}
        self._host: Host | None = None
        self._worker: Worker | None = None
        self._pump: Pump | None = None
        self._waits: Waits | None = None
        self._retention: Retention | None = None

    def source(self, source: Source) -> None:
        """Take a source, which is asked what its occasions mean.

        Raises:
            Conflict: There is one of its kind.
        """
        if source.kind in self._sources:
            raise Conflict(f"the source {source.kind!r} is there already")
        self._sources[source.kind] = source

    @staticmethod
    def write(
        connection: Connection, occasions: Iterable[Occasion]
    ) -> Sequence[Occasion]:
        """Write the occasions whose key is new, in anybody's transaction.

        Returns:
            Those that were new. :meth:`wake` is called once that is on disk.
        """
        from .writes import add

        return add(connection, occasions)

    def wake(self) -> None:
        """Have done what is due; before the start, that is found by the start."""
        if self._pump is None or self._host is None:
            return
        self._pump.wake()
        if self._retention is None:
            from .retention import Retention

            self._retention = Retention(self._host)
        self._retention.begin()

    async def start(self, host: Host) -> None:
        """Take up what the last process left, and do what is due."""
        from .pump import KIND, Pump
        from .settings import BackgroundSection

        self._host = host
        limits = host.settings(BackgroundSection)
        self._pump = Pump(host, limits.max_concurrent, self._give_up)
        if await host.store.first(ANY_OPEN) is not None:
            await self._take_up()
            self.wake()
        host.jobs.register(KIND, self._job, ATTEMPTS)
        self._pump.start()

    async def stop(self) -> None:
        """Begin nothing more; what runs is taken up by the next start."""
        if self._pump is not None:
            await self._pump.stop()
        if self._waits is not None:
            self._waits.stop()
        if self._retention is not None:
            await self._retention.stop()

    async def occasion(self, occasion_id: str) -> Occasion:
        """Read an occasion.

        Raises:
            NotFound: There is none.
        """
        return (await self._served()[1].read(occasion_id)).occasion

    async def list(
        self,
        source: str | None = None,
        source_id: str | None = None,
        state: OccasionState | None = None,
        *,
        limit: int = 100,
        after: str = "",
    ) -> Sequence[Occasion]:
        """Read occasions, newest first.

        Args:
            source: Only those of this kind of source.
            source_id: Only those of this source.
            state: Only those that stand so.
            limit: At most so many.
            after: Only those behind the occasion with this id.

        Raises:
            NotFound: There is no occasion ``after``.
        """
        from .tables import LISTED

        host, worker = self._served()
        behind = (await worker.read(after)).occasion if after else None
        wanted = {
            "source": source,
            "source_id": source_id,
            "state": state and state.value,
            "before": behind and behind.created_at,
            "after": after,
            "limit": limit,
        }
        return [occasion_of(row) for row in await host.store.read(LISTED, wanted)]

    async def cancel(self, context: Context, occasion_id: str) -> Occasion:
        """End an occasion that has not ended; give it as it stands then.

        What is being done is stopped, and ends soon after.

        Raises:
            NotFound: There is none.
            Conflict: It has ended.
        """
        host, worker = self._served()
        occasion = (await worker.read(occasion_id)).occasion
        if occasion.ended_at is not None:
            raise Conflict(f"the occasion is {occasion.state.value} already")
        reason = f"cancelled by {context.owner}"
        if not worker.doer.stop(occasion_id, reason):
            await worker.close(occasion_id, reason, context)
            if occasion.run_id:
                await worker.doer.end_run(occasion.run_id, context)
            elif occasion.state is OccasionState.WAITING and occasion.agent_id:
                await self._withdraw(host, occasion, reason)
            await worker.finish(occasion_id)
        return (await worker.read(occasion_id)).occasion

    async def _job(self, job: RunningJob) -> Json:
        """Do an occasion, counted among those that are done at once."""
        pump, (_, worker) = self._pump, self._served()
        assert pump is not None  # noqa: S101 - made before the handler is registered
        payload: Any = job.payload
        occasion_id = str(payload["occasion"])
        occasion = (await worker.read(occasion_id)).occasion
        pump.begun(occasion_id, (occasion.source, occasion.source_id))
        try:
            return await worker.run(job)
        finally:
            pump.ended(occasion_id)

    async def _take_up(self) -> None:
        """Find, page by page, what a dead process was at."""
        from .tables import BEGUN

        host, worker = self._served()
        after = ""
        while rows := await host.store.read(BEGUN, {"after": after, "limit": PAGE}):
            for row in rows:
                await self._taken_up(kept_of(row), worker)
            after = rows[-1]["id"]

    async def _taken_up(self, kept: Kept, worker: Worker) -> None:
        occasion = kept.occasion
        if occasion.state is OccasionState.WAITING:
            await worker.resume_waiting(kept)
        elif self._pump is not None:
            await self._pump.resume(occasion.id, (occasion.source, occasion.source_id))

    async def _give_up(self, occasion_id: str, reason: str) -> None:
        """End an occasion whose job has ended without it."""
        _, worker = self._served()
        await worker.close(occasion_id, reason)
        await worker.finish(occasion_id)

    async def _withdraw(self, host: Host, occasion: Occasion, reason: str) -> None:
        """Ask no person any more for the turn."""
        record = await host.journal.find(occasion.turn_id)
        if record is not None:
            session = record.session_id
            await host.approvals.cancel(occasion.agent_id, reason, session)

    def _served(self) -> tuple[Host, Worker]:
        """Give what does the work; it is made when the first is to be done."""
        host, pump = self._host, self._pump
        if host is None or pump is None:
            raise Unavailable("background work has not started yet; try again soon")
        if self._worker is None:
            from .waits import Waits
            from .worker import Worker

            self._waits = Waits(host, pump.go_on)
            self._worker = Worker(host, self._sources, self._waits, ATTEMPTS)
            self._worker.doer.runs = self.runs
            self._worker.doer.workflows = self.workflows
        return host, self._worker
