"""Tasks: ``task_post``, ``task_claim``, ``task_complete`` and ``task_list``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Literal
from uuid import uuid4

from agenthost import (
    AgentView,
    Effect,
    InvalidInput,
    ToolContext,
    ToolResult,
    ToolSpec,
    authorize,
)
from pydantic import BaseModel, Field

MOST_WORDS = 16_384


class TaskPost(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``task_post``."""

    title: str = Field(description="A few words", pattern=r"\S", max_length=200)
    description: str = Field(
        description="What is to be done", pattern=r"\S", max_length=MOST_WORDS
    )
    assigned_to: str = Field(
        "", description="Id or name of an agent; nobody is anybody", max_length=256
    )


class TaskClaim(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``task_claim``: none."""


class TaskComplete(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``task_complete``."""

    task_id: str = Field(description="Id of the task", max_length=64)
    result: str = Field(
        description="What has become of it", pattern=r"\S", max_length=MOST_WORDS
    )


class TaskList(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``task_list``."""

    status: Literal["", "pending", "in_progress", "completed"] = Field(
        "", description="Only those; nothing is all"
    )


async def task_post(context: ToolContext, call: TaskPost) -> ToolResult:
    """Leave a task for an agent, or for whichever takes it.

    Raises:
        NotFound: There is no such agent.
        Denied: This agent may not send that one messages.
        Conflict: It has too many open tasks.
    """
    from . import writes

    agent, now = _agent(context), context.clock.time()
    other = ""
    if call.assigned_to:
        found = context.host.agents.find(call.assigned_to)
        authorize(context.principal, "agent_message", found.name)
        other = found.id
    row = {
        "id": str(uuid4()),
        "title": call.title,
        "description": call.description,
        "posted_by": agent.id,
        "assigned_to": other,
        "claimed_by": "",
        "status": writes.PENDING,
        "result": "",
        "created_at": now,
        "updated_at": now,
        "owner": context.owner,
        "labels": json.dumps(sorted(context.labels)),
    }
    await context.host.store.write(partial(writes.post, row=row))
    return ToolResult(f"posted task {row['id']}")


async def task_claim(context: ToolContext, _: TaskClaim) -> ToolResult:
    """Take the oldest task that waits for this agent, or for anybody."""
    from . import writes

    agent, now = _agent(context), context.clock.time()
    claim = partial(writes.claim, agent_id=agent.id, now=now)
    row = await context.host.store.write(claim)
    if row is None:
        return ToolResult("no task waits for you")
    # What another agent wrote is known with what that one knew.
    return ToolResult(
        json.dumps(writes.shown(row), ensure_ascii=False),
        labels=frozenset(json.loads(row["labels"])),
    )


async def task_complete(context: ToolContext, call: TaskComplete) -> ToolResult:
    """Say what has become of a task that this agent has taken.

    Raises:
        NotFound: There is no such task.
        Denied: It has not taken it.
        Conflict: It is completed already.
    """
    from . import writes

    agent, now = _agent(context), context.clock.time()
    values = {"result": call.result, "updated_at": now, "labels": context.labels}
    await context.host.store.write(
        partial(writes.complete, task_id=call.task_id, agent_id=agent.id, values=values)
    )
    return ToolResult(f"completed task {call.task_id}")


async def task_list(context: ToolContext, call: TaskList) -> ToolResult:
    """Return the tasks that this agent has to do with, the newest first, as JSON."""
    from . import writes

    asked = {"agent": _agent(context).id, "status": call.status}
    rows = await context.host.store.read(writes.SEEN, asked)
    labels = frozenset(label for row in rows for label in json.loads(row["labels"]))
    found = json.dumps([writes.shown(row) for row in rows], ensure_ascii=False)
    return ToolResult(found, labels=labels)


def _agent(context: ToolContext) -> AgentView:
    if context.agent is None:
        raise InvalidInput("", "only an agent has tasks; none is calling")
    return context.agent


def task_tools() -> Iterable[ToolSpec]:
    """Give the tools."""
    yield ToolSpec(
        "task_post",
        "Leave a task for another agent, or for whichever takes it.",
        TaskPost,
        Effect.WRITE,
        task_post,
    )
    yield ToolSpec(
        "task_claim",
        "Take the oldest task that waits for you, or for anybody.",
        TaskClaim,
        Effect.WRITE,
        task_claim,
    )
    yield ToolSpec(
        "task_complete",
        "Say what has become of a task that you have taken.",
        TaskComplete,
        Effect.WRITE,
        task_complete,
    )
    yield ToolSpec(
        "task_list",
        "List the tasks that you posted, took, or could take.",
        TaskList,
        Effect.READ,
        task_list,
        idempotent=True,
    )
