"""Durable work that is kept in memory, for tests of what submits and does it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from agenthost_chat.chat import Json

from ...clock import Clock
from ...context import Context
from ...errors import AgentHostError, Conflict, InvalidInput, NotFound, Superseded
from ...ports.jobs import Job, JobHandler, JobState, Rows
from ...ports.store import Store

OPEN = frozenset({JobState.PENDING, JobState.RUNNING})


@dataclass(slots=True)
class Kept:
    """A job, and what its steps gave, as JSON."""

    job: Job
    outputs: dict[str, str] = field(default_factory=dict)

    def now(self, **changes: Any) -> Job:
        """Change the job."""
        self.job = replace(self.job, **changes)
        return self.job


class MemoryRun:
    """A run of a job.

    Args:
        kept: The job.
        store: Where rows of steps go.
    """

    def __init__(self, kept: Kept, store: Store) -> None:
        self.job = kept.job
        self.payload = kept.job.payload
        self._kept = kept
        self._store = store

    @property
    def counts(self) -> bool:
        """Whether the job was neither ended nor begun again since."""
        job = self._kept.job
        return job.state is JobState.RUNNING and job.epoch == self.job.epoch

    async def step(
        self, name: str, work: Callable[[], Awaitable[Json]], rows: Rows | None = None
    ) -> Json:
        """Do a piece of work once, and give its output.

        Raises:
            Superseded: The job was cancelled or runs again.
            InvalidInput: The output is not JSON.
        """
        if name not in self._kept.outputs:
            output = written(f"output of step {name!r}", await work())
            if not self.counts:
                raise Superseded("the job was cancelled, or runs again")
            if rows is not None:
                add, given = rows, json.loads(output)
                await self._store.write(lambda connection: add(connection, given))
            self._kept.outputs[name] = output
            self._kept.now(attempts=1)
        return json.loads(self._kept.outputs[name])


class MemoryJobs:
    """Jobs in memory: each that waits has a task.

    Args:
        store: Where rows of steps go.
        clock: Its wall time decides what is due.
        kept: What is there already; jobs go there, too, as to a table.
    """

    def __init__(
        self, store: Store, clock: Clock, kept: dict[str, Kept] | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._kept = {} if kept is None else kept
        self._handlers: dict[str, tuple[JobHandler, int]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._started = False

    def register(self, kind: str, handler: JobHandler, attempts: int = 3) -> None:
        """Say who does the work of a kind.

        Raises:
            Conflict: The kind has a handler.
            InvalidInput: There is no attempt.
        """
        if kind in self._handlers:
            raise Conflict(f"the job kind {kind!r} has a handler already")
        if attempts < 1:
            raise InvalidInput("attempts", "a job needs at least 1")
        self._handlers[kind] = handler, attempts
        self._begin_all()

    async def submit(
        self,
        kind: str,
        key: str,
        payload: Json,
        due: float | None = None,
        *,
        context: Context | None = None,
    ) -> str:
        """Ask for work once; give the job's id.

        Raises:
            InvalidInput: The key is empty or the payload is not JSON.
        """
        if not key:
            raise InvalidInput("key", "a job needs a key")
        for kept in self._kept.values():
            if kept.job.key == key:
                return kept.job.id
        now, given = self._clock.time(), json.loads(written("payload", payload))
        start = now if due is None else due
        nothing = JobState.PENDING, start, 0, 0, None, None, now, now
        job = Job(str(uuid4()), key, kind, given, *nothing)
        if context is not None:
            job = replace(job, owner=context.owner, labels=context.labels)
        self._kept[job.id] = Kept(job)
        self._begin_all()
        return job.id

    async def get(self, job: str) -> Job:
        """Give a job by its id, or raise NotFound."""
        if job not in self._kept:
            raise NotFound("job", job)
        return self._kept[job].job

    async def list(
        self, kind: str | None = None, state: JobState | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """Give jobs, newest first, of one kind or state when named."""
        found = [
            kept.job
            for kept in reversed(self._kept.values())
            if kind in {None, kept.job.kind} and state in {None, kept.job.state}
        ]
        return found[:limit]

    async def cancel(self, job: str) -> Job:
        """End a job that has not ended, and its handler."""
        if (await self.get(job)).state in OPEN:
            self._kept[job].now(state=JobState.CANCELLED)
            if task := self._tasks.get(job):
                task.cancel()
        return await self.get(job)

    async def start(self) -> None:
        """Take up what is there."""
        self._started = True
        self._begin_all()

    async def stop(self) -> None:
        """Stop running jobs; they run again after the next start."""
        self._started = False
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for kept in map(self._kept.__getitem__, self._tasks):
            if kept.job.state is JobState.RUNNING:
                kept.now(state=JobState.PENDING, attempts=kept.job.attempts - 1)
        self._tasks.clear()

    def _begin_all(self) -> None:
        for kept in self._kept.values():
            waits = (
                kept.job.state is JobState.PENDING and kept.job.id not in self._tasks
            )
            if self._started and waits and kept.job.kind in self._handlers:
                self._tasks[kept.job.id] = asyncio.create_task(self._work(kept))

    async def _work(self, kept: Kept) -> None:
        while kept.job.state is JobState.PENDING:
            await self._clock.sleep(kept.job.due - self._clock.time())
            job = kept.job
            kept.now(
                state=JobState.RUNNING, epoch=job.epoch + 1, attempts=job.attempts + 1
            )
            run = MemoryRun(kept, self._store)
            ended = await self._outcome(kept, run)
            if run.counts:
                kept.now(updated_at=self._clock.time(), **ended)

    async def _outcome(self, kept: Kept, run: MemoryRun) -> dict[str, Any]:
        """Run the handler and give what the job is then."""
        handler, attempts = self._handlers[kept.job.kind]
        try:
            result = json.loads(written("result", await handler(run)))
        except AgentHostError as refusal:
            error = refusal.message
        except Exception as fault:  # noqa: BLE001 - a handler may raise anything
            error = f"the handler failed ({type(fault).__name__})"
        else:
            return {"state": JobState.DONE, "result": result, "error": None}
        if kept.job.attempts >= attempts:
            return {"state": JobState.FAILED, "error": error}
        due = self._clock.time() + 2.0**kept.job.attempts
        return {"state": JobState.PENDING, "error": error, "due": due}


def written(name: str, value: Json) -> str:
    """Write JSON.

    Raises:
        InvalidInput: It is none.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(name, "is not JSON") from None
