"""The queue: one table. One process does not poll; several look for dead ones."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agenthost import (
    AgentHostError,
    Clock,
    Conflict,
    Context,
    InvalidInput,
    Job,
    JobHandler,
    JobState,
    Json,
    NotFound,
    Store,
    Superseded,
)

from .retention import Retention
from .rows import LEFT_RUNNING, PENDING, job_of, written
from .running import DurableWrite, EmbeddedRun

if TYPE_CHECKING:
    from .others import Others

LONGEST_WAIT = 60.0
"""Seconds after which a jump of the wall clock is noticed."""

LEASE = 60.0
"""Seconds a run counts as alive after its process last said so, where it is alone."""
RENEWAL = LEASE / 3
TOPIC = "jobs"

log = logging.getLogger(__name__)


class EmbeddedJobs:
    """Durable work over a store, which other processes may run as well.

    Args:
        store: Opened with this package's SCHEMA.
        clock: Its wall time decides what is due.
        concurrency: How many jobs may run at once.
        chance: Gives numbers from 0 to 1, for pauses.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        concurrency: int = 16,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._clock = clock
        self._durably = DurableWrite(store, clock)
        self._concurrency = concurrency
        self._chance = chance
        self._holder = str(uuid4())
        self._renewal = 0.0
        self._others: Others | None = None
        self._lease, self._renew_after = LEASE, RENEWAL
        if store.signals is not None:
            from . import others

            self._others = others.Others(store, clock, self._holder)
            self._lease, self._renew_after = others.LEASE, others.RENEWAL
        self._retention = Retention(store, clock)
        self._needed = False
        self._handlers: dict[str, JobHandler] = {}
        self._attempts: dict[str, int] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._dispatcher: asyncio.Task[None] | None = None

    def register(self, kind: str, handler: JobHandler, attempts: int = 3) -> None:
        """Say who does the work of a kind; jobs without a handler wait.

        Args:
            kind: What jobs are submitted with.
            handler: Does the work.
            attempts: How many runs in a row may fail, or die with the process,
                without having finished a step.

        Raises:
            Conflict: The kind has a handler.
            InvalidInput: There is no attempt.
        """
        if kind in self._handlers:
            raise Conflict(f"the job kind {kind!r} has a handler already")
        if attempts < 1:
            raise InvalidInput("attempts", "a job needs at least 1")
        self._attempts[kind] = attempts
        self._handlers[kind] = handler
        self._changed.set()

    async def submit(
        self,
        kind: str,
        key: str,
        payload: Json,
        due: float | None = None,
        *,
        context: Context | None = None,
    ) -> str:
        """Ask for work once; it is on disk when this returns.

        Args:
            kind: Chooses the handler.
            key: Names this piece of work: the same key gives the same job, whatever
                became of it, until the job is forgotten 30 days after its end.
            payload: JSON for the handler.
            due: Epoch seconds before which it does not start.
            context: What causes it: owner and labels of the job are those of it.

        Returns:
            The id of the job.

        Raises:
            InvalidInput: The key is empty or the payload is not JSON.
        """
        from . import writes

        if not key:
            raise InvalidInput("key", "a job needs a key")
        now = self._clock.time()
        row: dict[str, Any] = {
            "id": str(uuid4()),
            "key": key,
            "kind": kind,
            "payload": written("payload", payload),
            "state": JobState.PENDING.value,
            "due": now if due is None else due,
            "epoch": 0,
            "attempts": 0,
            "created_at": now,
            "updated_at": now,
            "owner": context.owner if context else "",
            "labels": json.dumps(sorted(context.labels) if context else []),
        }
        job = await self._store.write(partial(writes.add, row=row))
        self._tell()
        return job

    async def get(self, job: str) -> Job:
        """Give a job by its id.

        Raises:
            NotFound: There is none.
        """
        from .tables import ONE

        row = await self._store.first(ONE, {"id": job})
        if row is None:
            raise NotFound("job", job)
        return job_of(row)

    async def list(
        self, kind: str | None = None, state: JobState | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """Give jobs, newest first, of one kind or state when named."""
        from .tables import LISTED

        wanted = {"kind": kind, "state": state and state.value, "limit": limit}
        return [job_of(row) for row in await self._store.read(LISTED, wanted)]

    async def cancel(self, job: str) -> Job:
        """End a job that has not ended; its handler is cancelled.

        Returns:
            The job as it stands then; one that had ended stays as it was.

        Raises:
            NotFound: There is none.
        """
        from . import writes

        now = self._clock.time()
        changed = await self._store.write(partial(writes.cancel, job=job, now=now))
        if changed and (task := self._running.get(job)):
            task.cancel()
        return await self.get(job)

    async def start(self) -> None:
        """Take up what a dead process left running, and run what is due."""
        if self._store.signals is not None:
            self._store.signals.listen(TOPIC, lambda _: self._changed.set())
        elif await self._store.first(LEFT_RUNNING) is not None:
            # The home's lock says that no other process lives: no lease is waited for.
            await self._store.write(self._releasing(None))
        self._dispatcher = asyncio.create_task(self._dispatch(), name="jobs")

    def _releasing(self, dead: tuple[str, float] | None) -> Callable[..., None]:
        from . import writes

        held = None if dead is None else writes.Held(*dead)
        now, chance = self._clock.time(), self._chance
        return partial(writes.release, now=now, chance=chance, dead=held)

    def _tell(self) -> None:
        """Let whoever runs jobs look again, here and elsewhere."""
        self._changed.set()
        if self._store.signals is not None:
            self._store.signals.tell(TOPIC)

    async def stop(self) -> None:
        """Stop running jobs; they run again after the next start."""
        tasks = [*self._running.values()]
        if self._dispatcher:
            tasks.append(self._dispatcher)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._dispatcher = None
        await self._retention.stop()
        if not self._handlers or not self._needed:
            return
        from . import writes

        now = self._clock.time()
        # A disk that fails now only makes these runs count as attempts.
        with suppress(AgentHostError):
            await self._store.write(
                partial(writes.hand_back, holder=self._holder, now=now)
            )
            self._tell()

    async def _dispatch(self) -> None:
        while True:
            self._changed.clear()
            await self._renew()
            self._retention.begin()
            await self._take_over()
            next_due = await self._start_due()
            await self._wait(next_due)

    async def _renew(self) -> None:
        """Say that the running jobs' process lives, when it is time to.

        What turns out to run elsewhere by now, or was cancelled there, ends here.
        """
        now = self._clock.time()
        if self._running and now >= self._renewal:
            from . import writes

            self._renewal = now + self._renew_after
            until = now + self._lease
            held = await self._durably(
                partial(writes.renew, holder=self._holder, until=until)
            )
            for job in self._running.keys() - held:
                task = self._running[job]
                # One that is ending already is not disturbed at it.
                if not task.cancelling():
                    task.cancel()

    async def _take_over(self) -> None:
        """Take up what other processes ran that have died since."""
        if self._others is not None:
            for dead in await self._others.dead():
                await self._durably(self._releasing(dead))

    async def _is_needed(self) -> bool:
        """Tell whether there has been anything to do since the start.

        A start that finds nothing imports nothing for it.
        """
        if not self._needed:
            self._needed = await self._store.first(PENDING) is not None
        return self._needed

    async def _start_due(self) -> float | None:
        """Start what is due and fits; give when the next one is due."""
        room = self._concurrency - len(self._running)
        if not room or not self._handlers or not await self._is_needed():
            return None
        from . import writes

        now = self._clock.time()
        claimed = await self._durably(
            partial(
                writes.claim,
                attempts=dict(self._attempts),
                room=room,
                lease=writes.Lease(self._holder, now, now + self._lease),
            )
        )
        if claimed.jobs and not self._running:
            self._renewal = now + self._renew_after
        for job, outputs in claimed.jobs:
            self._begin(EmbeddedRun(job, outputs, self._durably))
        return None if len(claimed.jobs) == room else claimed.next_due

    def _begin(self, running: EmbeddedRun) -> None:
        job = running.job
        task = asyncio.create_task(self._run(running), name=f"job {job.id}")
        self._running[job.id] = task
        task.add_done_callback(partial(self._forget, job.id))

    def _forget(self, job: str, task: asyncio.Task[None]) -> None:
        # The next run of the job may have begun before this one's task was over.
        if self._running.get(job) is task:
            del self._running[job]
        self._changed.set()

    async def _wait(self, due: float | None) -> None:
        """Wait until something changes, or a job or the leases' renewal is due."""
        if self._running:
            due = self._renewal if due is None else min(due, self._renewal)
        if self._others is not None:
            look = self._clock.time() + self._others.every
            due = look if due is None else min(due, look)
        if due is None:
            await self._changed.wait()
            return
        waits = [
            asyncio.ensure_future(self._sleep_until(due)),
            asyncio.ensure_future(self._changed.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _sleep_until(self, due: float) -> None:
        # The delay is taken where the sleep begins: the time may have moved on.
        delay = min(due - self._clock.time(), LONGEST_WAIT)
        if delay > 0:
            await self._clock.sleep(delay)

    async def _run(self, running: EmbeddedRun) -> None:
        with suppress(Superseded):
            outcome = await self._outcome(running)
            await self._durably(partial(outcome, now=self._clock.time()))

    async def _outcome(self, running: EmbeddedRun) -> Callable[..., None]:
        """Run the handler and give the write that says how this run ended."""
        from . import writes

        job = running.job
        try:
            result = written("result", await self._handlers[job.kind](running))
        except Superseded:
            raise
        except asyncio.CancelledError:
            if was_cancelled():
                raise
            error = "something the handler waited for was cancelled"
        except AgentHostError as refusal:
            error = refusal.message
        except (Exception, SystemExit) as fault:
            log.exception("job %s of kind %s failed", job.id, job.kind)
            name = type(fault).__name__
            error = f"the handler failed ({name}); the log says more"
        else:
            return partial(writes.finish, job=job, result=result)
        failure = writes.Failure(error, self._attempts[job.kind])
        return partial(writes.fail, job=job, failure=failure, chance=self._chance)


def was_cancelled() -> bool:
    """Tell whether this task itself was asked to stop."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
