"""The runs of workflows: asked for once, done as durable jobs, told as they go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid4, uuid5

from agenthost import (
    Conflict,
    Context,
    DaemonStopping,
    Host,
    Interrupted,
    Mismatch,
    Pool,
    Superseded,
    TooLarge,
    Unavailable,
    telling,
)

from .definition import Workflow
from .run_events import WorkflowRunStarted
from .run_jobs import RunJobs
from .run_rows import Run, RunState, StepRecord, run_of
from .spending import asked_by_itself, asks_text
from .watchers import Watchers

if TYPE_CHECKING:
    import asyncio

    from .course import Course

INPUT_CHARACTERS = 256 * 1024


class _AskedBefore(Exception):
    """There is a run of this key already."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


class Runs:
    """The runs of one daemon."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._watchers = Watchers()
        self._jobs = RunJobs(host, self._watchers)
        self._draining = False

    async def open(self) -> None:
        """Take up the runs that the last process left."""
        self._host.events.subscribe(self._drain, DaemonStopping)
        if (signals := self._host.store.signals) is not None:
            self._watchers.reach(signals)
        await self._jobs.start()

    async def close(self) -> None:
        """Take no more; what runs goes on after the next start."""
        self._draining = True
        await self._jobs.stop()

    async def start(
        self,
        context: Context,
        workflow: Workflow,
        input: str,  # noqa: A002 - as the field is called
        *,
        key: str | None = None,
        within: Pool | None = None,
    ) -> str:
        """Ask for a run; give its id once it is on disk.

        Args:
            context: Who causes it.
            workflow: What is run, as it stands now.
            input: What it is run with.
            key: Makes the start idempotent: of one workflow it is the same run.
            within: What the whole tree of its calls may spend, and what a person may
                be asked then, which the run says itself where nobody does. The
                workflow's own limit holds too.

        Raises:
            Mismatch: The key was given for something else.
            TooLarge: The input is too long.
            Unavailable: The daemon is draining.
        """
        if self._draining:
            raise Unavailable("draining: the daemon is shutting down")
        if len(input) > INPUT_CHARACTERS:
            raise TooLarge(f"input: over the limit of {INPUT_CHARACTERS} characters")
        most = None if within is None else within.limit
        limits = (most, workflow.max_cost_micro_usd)
        asked = [input, most]
        run_id = _id_of(workflow.id, key)
        limit = min((x for x in limits if x is not None), default=None)
        asks = within.asks if within is not None else None
        asks = asks or asked_by_itself(self._host, run_id, workflow.name, limit)
        row = {
            **_new_row(context, workflow),
            "id": run_id,
            "input": input,
            "digest": "" if key is None else _digest(asked),
            "max_cost_micro_usd": limit,
            "asks": asks_text(asks),
            "created_at": self._host.clock.time(),
        }
        try:
            await self._add(context, row)
        except _AskedBefore as before:
            if before.digest != row["digest"]:
                raise Mismatch(
                    "this Idempotency-Key was given before with another body; "
                    "use a new one"
                ) from None
        # Were the process to die here, its next start would submit the job; who asks
        # again after an error does so as well.
        run = await self.get(run_id)
        if run.state is RunState.PENDING:
            await self._jobs.submit(run)
        return run_id

    async def get(self, run_id: str) -> Run:
        """Read a run.

        Raises:
            NotFound: There is none.
        """
        return await self._jobs.get(run_id)

    async def records(self, run_id: str, after: int = 0) -> Sequence[StepRecord]:
        """Read the step records of a run behind the one of this number."""
        return await self._jobs.records(run_id, after)

    async def list(
        self, workflow_id: str, limit: int = 100, after: str = ""
    ) -> Sequence[Run]:
        """Read the runs of a workflow, newest first, behind the run with this id."""
        from .run_tables import LISTED

        wanted = {"workflow": workflow_id, "limit": limit, "after": after}
        return [run_of(row) for row in await self._host.store.read(LISTED, wanted)]

    async def wait(self, run_id: str) -> Run:
        """Wait until a run has ended, or waits for a person; give it as it stands.

        Not to be awaited inside a job: the run is a job too, and may never get a place
        among jobs that all wait for one.

        Raises:
            NotFound: There is none.
            Interrupted: The daemon ends; the run goes on after its next start.
        """
        with self.watching(run_id) as changed:
            while True:
                changed.clear()
                run = await self.get(run_id)
                if run.ended or run.waiting:
                    return run
                if self.stands_still(run_id):
                    raise _cut_off(run_id)
                await changed.wait()

    async def cancel(self, run_id: str, by: Context) -> Run:
        """End a run, with the turns that run for it; what they did stays done.

        Raises:
            NotFound: There is none.
            Conflict: It has ended.
        """
        run = await self.get(run_id)
        reason = f"its run was cancelled by {by.owner}"
        ending = {
            "state": RunState.CANCELLED,
            "error": f"The run was cancelled by {by.owner}",
            "code": "cancelled",
        }
        try:
            await self._jobs.close(run, ending)
        except Superseded:
            now = (await self.get(run_id)).state.value
            raise Conflict(f"the run is {now} already; nothing was changed") from None
        await self._jobs.cancel(run, reason)
        return await self.get(run_id)

    def watching(
        self, run_id: str, *, steps: bool = False
    ) -> AbstractContextManager[asyncio.Event]:
        """Be told of changes of a run, or of its steps too; see :class:`Watchers`."""
        return self._watchers.watching(run_id, steps=steps)

    def under_way(self, run_id: str) -> Course | None:
        """Give a run's course while a job has it in hand."""
        return self._jobs.live.get(run_id)

    def stands_still(self, run_id: str) -> bool:
        """Tell whether a run goes on after the daemon's next start only."""
        course = self.under_way(run_id)
        return self._draining and (course is None or course.parked)

    async def _add(self, context: Context, row: dict[str, Any]) -> None:
        """Write a run, or raise _AskedBefore: then nothing is told."""
        from . import run_tables

        told = (row["id"], row["created_at"], row["workflow_id"], row["workflow_name"])
        kind, caused = WorkflowRunStarted, context.caused
        with telling(self._host.events, kind, *told, **caused) as keep:
            add = partial(run_tables.add, row=row, keep=keep)
            if (digest := await self._host.store.write(add)) is not None:
                raise _AskedBefore(digest)

    def _drain(self, _: DaemonStopping) -> None:
        self._draining = True
        self._watchers.everyone()


def _cut_off(run_id: str) -> Interrupted:
    cut = Interrupted("the daemon is shutting down; the run goes on later", "")
    cut.facts = {"run_id": run_id}
    return cut


def _new_row(context: Context, workflow: Workflow) -> dict[str, Any]:
    who = context.caller or context.principal
    return {
        "workflow_id": workflow.id,
        "workflow_name": workflow.name,
        "definition": json.dumps([asdict(step) for step in workflow.steps]),
        "state": RunState.PENDING.value,
        "ended": 0,
        "output": None,
        "error": "",
        "code": "",
        "cost_micro_usd": 0,
        "apart_micro_usd": 0,
        "seconds": 0.0,
        "leg": 0,
        "waiting": "[]",
        "steps_completed": 0,
        "owner": context.owner,
        "person": who.person,
        "labels": json.dumps(sorted(context.labels | workflow.labels)),
        "depth": context.depth,
        "started_at": None,
        "completed_at": None,
    }


def _id_of(workflow_id: str, key: str | None) -> str:
    if key is None:
        return str(uuid4())
    return str(uuid5(NAMESPACE_URL, f"agenthost:workflow:{workflow_id}:{key}"))


def _digest(asked: object) -> str:
    return sha256(json.dumps(asked).encode()).hexdigest()
