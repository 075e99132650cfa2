"""``/api/workflows``: list, make, show, replace, delete; what one would cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING
from uuid import UUID

from agenthost import (
    Answer,
    Call,
    Host,
    InvalidInput,
    NotFound,
    Reply,
    RouteGroup,
    timestamp,
)

from ..orchestration import orchestration_of
from .shapes import (
    AskWorkflowQuote,
    FilesLoaded,
    PutWorkflow,
    WorkflowGone,
    WorkflowItem,
    WorkflowMade,
    WorkflowQuote,
    WorkflowShown,
    WorkflowStatus,
)

if TYPE_CHECKING:
    from .definition import Draft, Listed, Workflow

routes = RouteGroup("workflows")

MILLION = 1_000_000
UNSET = frozenset({"agent_id", "agent_name", "output_var", "condition", "until"})
"""Fields of a step that are null where they say nothing."""


@routes.get("/api/workflows", scope="workflows:read", answer=list[WorkflowItem])
async def list_workflows(call: Call) -> Answer:
    """List all workflows, oldest first."""
    found = await orchestration_of(call.host).workflows.list()
    return [_shown(each, each.steps) for each in found]


@routes.post(
    "/api/workflows",
    scope="workflows:write",
    body=PutWorkflow,
    answer=WorkflowMade,
    status=201,
)
async def create_workflow(call: Call, body: PutWorkflow) -> Answer:
    """Make a workflow of steps that agents do."""
    draft, warnings = _read(call.host, body)
    made = await orchestration_of(call.host).workflows.add(call.context, draft)
    return Reply({"workflow_id": made.id, "warnings": warnings}, 201)


@routes.post(
    "/api/workflows/reload", scope="workflows:write", cost=20, answer=FilesLoaded
)
async def reload_workflows(call: Call) -> Answer:
    """Make and change what the files of the home say."""
    return await orchestration_of(call.host).workflow_files.load(call.context)


@routes.get(
    "/api/workflows/<workflow_id>", scope="workflows:read", answer=WorkflowShown
)
async def get_workflow(call: Call, workflow_id: UUID) -> Answer:
    """Show a workflow with its steps."""
    found = await orchestration_of(call.host).workflows.get(str(workflow_id))
    steps = [_or_null(asdict(each)) for each in found.steps]
    return {**_shown(found, len(steps)), "steps": steps}


@routes.put(
    "/api/workflows/<workflow_id>",
    scope="workflows:write",
    cost=10,
    body=PutWorkflow,
    answer=WorkflowStatus,
)
async def replace_workflow(call: Call, workflow_id: UUID, body: PutWorkflow) -> Answer:
    """Give a workflow another definition; runs under way keep the old one."""
    draft, warnings = _read(call.host, body)
    own = orchestration_of(call.host)
    old = await own.workflows.get(str(workflow_id))
    await own.workflow_files.check_free(old)
    await own.workflows.replace(call.context, old, draft)
    return {"status": "updated", "workflow_id": old.id, "warnings": warnings}


@routes.delete(
    "/api/workflows/<workflow_id>", scope="workflows:write", answer=WorkflowGone
)
async def delete_workflow(call: Call, workflow_id: UUID) -> Answer:
    """Delete a workflow; its runs go on, and can be read by their ids."""
    own = orchestration_of(call.host)
    old = await own.workflows.get(str(workflow_id))
    await own.workflow_files.check_free(old)
    await own.workflows.delete(call.context, old)
    return {"status": "removed", "workflow_id": old.id}


@routes.post(
    "/api/workflows/<workflow_id>/quote",
    scope="workflows:run",
    cost=20,
    body=AskWorkflowQuote,
    answer=WorkflowQuote,
)
async def quote_workflow(
    call: Call, workflow_id: UUID, body: AskWorkflowQuote
) -> Answer:
    """Tell what a run would cost, without asking any model."""
    from .quote import quote

    found = await orchestration_of(call.host).workflows.get(str(workflow_id))
    return await quote(call.host, found, body.input)


def _read(host: Host, body: PutWorkflow) -> tuple[Draft, list[str]]:
    """Read what a client wrote, and warn of what is probably not as meant.

    Raises:
        InvalidInput: It is no workflow; step and field are named.
    """
    from .reading import Faulty, read_workflow

    try:
        reading = read_workflow(body.written)
    except Faulty as error:
        first, *others = error.problems
        more = f" (and {len(others)} more)" if others else ""
        raise InvalidInput(_cut(first.key), f"{first.text}{more}") from None
    told = [f"{_cut(each.key)}: {each.text}" for each in reading.doubts]
    return reading.draft, [*told, *_absent(host, reading.draft)]


def _cut(key: str) -> str:
    return key if len(key) <= 100 else f"{key[:99]}…"


def _absent(host: Host, draft: Draft) -> list[str]:
    """Tell which agents are not there; they may come before the first run."""
    told = []
    for number, step in enumerate(draft.steps):
        field = "agent_id" if step.agent_id else "agent_name"
        wanted = getattr(step, field)
        if not wanted:
            continue
        try:
            host.agents.find(wanted)
        except NotFound:
            told.append(f"steps[{number}].{field}: there is no agent {wanted} now")
    return told


def _shown(workflow: Workflow | Listed, steps: int) -> WorkflowItem:
    """What list and detail have in common."""
    most = workflow.max_cost_micro_usd
    return {
        "id": workflow.id,
        "name": workflow.name,
        "description": workflow.description,
        "steps": steps,
        "created_at": timestamp(workflow.created_at),
        "updated_at": timestamp(workflow.updated_at),
        "owner": workflow.owner,
        "file": workflow.file or None,
        "max_cost_usd": None if most is None else most / MILLION,
    }


def _or_null(step: dict[str, object]) -> dict[str, object]:
    return {
        name: value or None if name in UNSET else value for name, value in step.items()
    }
