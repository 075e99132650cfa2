"""Workflows on a stage: agents of a scripted model, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
from agenthost import NotFound
from agenthost.testing.daemons import RunningDaemon
from agenthost_orchestration.orchestration import Orchestration, orchestration_of
from agenthost_orchestration.workflows import tables
from agenthost_orchestration.workflows.definition import (
    ErrorMode,
    Mode,
    Workflow,
    WorkflowStep,
)
from agenthost_orchestration.workflows.rows import row_of
from agenthost_orchestration.workflows.run_rows import Run

PATIENCE = 30.0


def step(name: str, prompt: str = "{{input}}", **facts: Any) -> WorkflowStep:
    """A step that asks the agent ``tester`` unless it says whom."""
    mode = Mode(facts.pop("mode", "sequential"))
    error_mode = ErrorMode(facts.pop("error_mode", "fail"))
    if mode is not Mode.COLLECT:
        facts.setdefault("agent_name", "tester")
    return WorkflowStep(name, prompt=prompt, mode=mode, error_mode=error_mode, **facts)


def workflow(*steps: WorkflowStep, max_cost: int | None = None) -> Workflow:
    """A workflow of these steps."""
    named = (str(uuid4()), "flow", "")
    return Workflow(*named, steps, max_cost, 0.0, 0.0, "operator:operator")


def orchestration(daemon: RunningDaemon) -> Orchestration:
    """The area of a daemon."""
    return orchestration_of(daemon.daemon)


async def shelve(daemon: RunningDaemon, flow: Workflow) -> str:
    """Have a daemon know a workflow; give the beginning of its routes."""
    try:
        await orchestration(daemon).workflows.get(flow.id)
    except NotFound:
        await daemon.daemon.store.write(partial(tables.add, row=row_of(flow)))
    return f"/api/workflows/{flow.id}"


async def run(
    daemon: RunningDaemon, flow: Workflow, given: str = "", **how: Any
) -> httpx.Response:
    """Run a workflow over REST and wait for its end."""
    path, body = await shelve(daemon, flow), {"input": given, **how}
    return await daemon.http.post(f"{path}/run", json=body)


async def output(daemon: RunningDaemon, flow: Workflow, given: str = "") -> str:
    """Run a workflow to its end and give what came of it."""
    answer = await run(daemon, flow, given)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "completed"
    return str(answer.json()["output"])


async def detail(daemon: RunningDaemon, run_id: str) -> dict[str, Any]:
    """Read a run with its steps."""
    answer = await daemon.http.get(f"/api/workflows/runs/{run_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def only_run(daemon: RunningDaemon, flow: Workflow) -> dict[str, Any]:
    """Read the one run of a workflow with its steps."""
    answer = await daemon.http.get(f"{await shelve(daemon, flow)}/runs")
    (item,) = answer.json()
    return await detail(daemon, item["id"])


def asked(daemon: RunningDaemon) -> list[str]:
    """What the model was asked, in order: the last message of each call."""
    return [request.messages[-1].text for request in daemon.model.requests]


async def row(daemon: RunningDaemon, run_id: str) -> Run:
    """Read a run's row."""
    return await orchestration(daemon).runs.get(run_id)


async def comes(
    holds: Callable[[], Awaitable[bool]], what: str, patience: float = PATIENCE
) -> None:
    """Wait until something is so; what never comes is a failure, told by its name."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while not await holds():
        assert loop.time() < deadline, f"it never came to this: {what}"
        await asyncio.sleep(0.005)
