"""The REST surface of runs: start, watch and cancel them, and read what they did."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    Conflict,
    EventStream,
    InvalidInput,
    Pool,
    Reply,
    RouteGroup,
    timestamp,
)

from ..orchestration import orchestration_of
from .definition import WorkflowStep
from .run_rows import Run, RunState, StepRecord
from .run_shapes import (
    RunDetail,
    RunDone,
    RunEvents,
    RunItem,
    RunsQuery,
    RunStarted,
    StartQuery,
    StartRun,
    StepItem,
    StepStarted,
)
from .runs import Runs
from .walk import Asked, record_name

routes = RouteGroup("workflow_runs")

COST = 100
KEY_LENGTH = 255
KEY_HEADER = {"Idempotency-Key": "The same key and body are the same run"}
LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Some readers of event streams take these for the end of a line."""


class RunFailed(AgentHostError):
    """A run ended without an output; ``code`` says by what."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.error)
        self.code = run.code
        self.facts = {"run_id": run.id}


@routes.post(
    "/api/workflows/<workflow_id>/run",
    scope="workflows:run",
    cost=COST,
    body=StartRun,
    query=StartQuery,
    answer=RunDone,
    others={202: RunStarted},
    headers=KEY_HEADER,
)
async def start_run(
    call: Call, workflow_id: UUID, body: StartRun, query: StartQuery
) -> Answer:
    """Run a workflow and wait for its output; a client that leaves does not stop it.

    With an ``Idempotency-Key`` header a repeated request is the same run. One that
    waits for a person's approval is answered with 202, as every run is with
    ``wait=false``; it goes on by itself.
    """
    orchestration = orchestration_of(call.host)
    workflow = await orchestration.workflows.get(str(workflow_id))
    runs = orchestration.runs
    most = body.max_cost_micro_usd
    run_id = await runs.start(
        call.context,
        workflow,
        body.input,
        key=_key_of(call),
        within=None if most is None else Pool(most),
    )
    if not query.wait:
        return _started(await runs.get(run_id))
    run = await runs.wait(run_id)
    if run.state is RunState.COMPLETED:
        return {"run_id": run.id, "output": run.output, "status": "completed"}
    if run.state is RunState.FAILED:
        raise RunFailed(run)
    if run.ended:
        cancelled = Conflict(run.error)
        cancelled.code, cancelled.facts = run.code, {"run_id": run.id}
        raise cancelled
    return _started(run)


@routes.get(
    "/api/workflows/<workflow_id>/runs",
    scope="workflows:read",
    query=RunsQuery,
    answer=list[RunItem],
)
async def list_runs(call: Call, workflow_id: UUID, query: RunsQuery) -> Answer:
    """List the runs of a workflow, newest first."""
    orchestration = orchestration_of(call.host)
    workflow = await orchestration.workflows.get(str(workflow_id))
    after = str(query.after) if query.after else ""
    found = await orchestration.runs.list(workflow.id, query.limit, after)
    return [item_of(each) for each in found]


@routes.get("/api/workflows/runs/<run_id>", scope="workflows:read", answer=RunDetail)
async def get_run(call: Call, run_id: UUID) -> Answer:
    """Show a run with its step records."""
    return await _detail(_runs(call), str(run_id))


@routes.post(
    "/api/workflows/runs/<run_id>/cancel", scope="workflows:run", answer=RunDetail
)
async def cancel_run(call: Call, run_id: UUID) -> Answer:
    """End a run, with the turns that run for it; what they did stays done."""
    runs = _runs(call)
    run = await runs.cancel(str(run_id), call.context)
    return await _detail(runs, run.id)


@routes.get(
    "/api/workflows/runs/<run_id>/events",
    scope="workflows:read",
    answer=EventStream,
    events=RunEvents,
    headers={"Last-Event-ID": "The last step that the reader knows the end of"},
)
async def watch_run(call: Call, run_id: UUID) -> Answer:
    """Read what happens in a run: what has happened so far, then live.

    Behind ``Last-Event-ID`` each end of a step is told once; the start of one that is
    under way may be told again.
    """
    runs, known = _runs(call), call.headers.get("last-event-id", "")
    run = await runs.get(str(run_id))
    after = int(known) if known.isdecimal() and len(known) < 10 else 0
    return EventStream(_frames(runs, run.id, after))


def item_of(run: Run) -> RunItem:
    """Show a run in a list."""
    return {
        "id": run.id,
        "workflow_id": run.workflow_id,
        "workflow_name": run.workflow_name,
        "state": run.state.value,
        "steps_completed": run.steps_completed,
        "cost_usd": _dollars(run.cost_micro_usd + run.apart_micro_usd),
        "waiting": [] if run.ended else [*run.waiting],
        "started_by": run.owner,
        "created_at": timestamp(run.created_at),
        "started_at": _moment(run.started_at),
        "completed_at": _moment(run.completed_at),
    }


async def _detail(runs: Runs, run_id: str) -> RunDetail:
    run = await runs.get(run_id)
    limit = run.max_cost_micro_usd
    return {
        **item_of(run),
        "input": run.input,
        "output": run.output,
        "error": run.error or None,
        "code": run.code or None,
        "max_cost_usd": None if limit is None else _dollars(limit),
        "steps": [_step(each) for each in await runs.records(run.id)],
    }


def _step(record: StepRecord) -> StepItem:
    return {
        "seq": record.seq,
        "step": record.index + 1,
        "name": record.name,
        "attempt": record.attempt,
        "agent_id": record.agent_id,
        "agent_name": record.agent_name,
        "output": record.output,
        "error": record.error or None,
        "code": record.code or None,
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "cost_usd": _dollars(record.cost_micro_usd),
        "duration_ms": round(1_000 * max(record.ended_at - record.started_at, 0)),
        "started_at": timestamp(record.started_at),
        "completed_at": timestamp(record.ended_at),
    }


async def _frames(runs: Runs, run_id: str, after: int) -> AsyncIterator[bytes]:
    """Tell a run: each look at its rows tells what is new since the one before."""
    begun: set[str] = set()
    waits: tuple[str, ...] = ()
    with runs.watching(run_id, steps=True) as changed:
        while True:
            changed.clear()
            # Read first: what ended before this has its record by now.
            run = await runs.get(run_id)
            for record in await runs.records(run_id, after):
                if record.key not in begun:
                    begun.add(record.key)
                    yield _frame("step_started", _start_of(record))
                after = record.seq
                yield _frame("step_ended", _step(record), str(after))
            course = runs.under_way(run_id)
            for asked in list(course.asked.values()) if course else ():
                if asked.key not in begun:
                    begun.add(asked.key)
                    yield _frame("step_started", _start(run.steps[asked.index], asked))
            if run.waiting and run.waiting != waits and not run.ended:
                yield _frame("waiting", {"turns": [*run.waiting]})
            waits = run.waiting
            if run.ended:
                yield _frame("run_ended", item_of(run))
                return
            if runs.stands_still(run_id):
                return
            await changed.wait()


def _start_of(record: StepRecord) -> StepStarted:
    return {"step": record.index + 1, "name": record.name, "attempt": record.attempt}


def _start(step: WorkflowStep, asked: Asked) -> StepStarted:
    name = record_name(step, asked.iteration)
    return {"step": asked.index + 1, "name": name, "attempt": asked.attempt}


def _frame(event: str, data: Any, event_id: str = "") -> bytes:
    text = json.dumps(data, ensure_ascii=False).translate(LINE_ENDS)
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {event}\ndata: {text}\n\n".encode()


def _runs(call: Call) -> Runs:
    return orchestration_of(call.host).runs


def _key_of(call: Call) -> str | None:
    key = call.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= KEY_LENGTH:
        raise InvalidInput("Idempotency-Key", f"must have 1 to {KEY_LENGTH} characters")
    return key


def _started(run: Run) -> Reply:
    told: RunStarted = {"run_id": run.id, "status": "running"}
    if run.waiting:
        told = {"run_id": run.id, "status": "waiting", "waiting": [*run.waiting]}
    return Reply(told, 202, {"Location": f"/api/workflows/runs/{run.id}"})


def _dollars(micro_usd: int) -> float:
    return micro_usd / 1_000_000


def _moment(at: float | None) -> str | None:
    return None if at is None else timestamp(at)
