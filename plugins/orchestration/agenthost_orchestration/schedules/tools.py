"""Times of an agent's own: ``schedule_create``, ``schedule_list``, ``schedule_delete``.

It makes schedules for itself alone: what it is told then is what it says now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from math import floor
from typing import Literal

from agenthost import (
    AgentView,
    Denied,
    Effect,
    InvalidInput,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from pydantic import BaseModel, Field

MOST_WORDS = 16_384


class ScheduleCreate(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``schedule_create``."""

    name: str = Field(description="A few words", min_length=1, max_length=100)
    when: str = Field(
        description='"every 30m", a cron expression such as "0 9 * * 1-5", or one '
        'moment such as "2027-01-31T09:00:00Z"',
        max_length=200,
    )
    prompt: str = Field(
        description="What you are told at that time",
        min_length=1,
        max_length=MOST_WORDS,
    )
    zone: str = Field(
        "UTC", description="IANA zone of a cron expression", max_length=64
    )
    session: Literal["new", "persistent", "own"] = Field(
        "new",
        description="The conversation it happens in: a new one each time, one of this "
        "schedule that goes on, or your own",
    )
    allowance_usd: float = Field(
        0.05, description="US dollars it may spend in a day", gt=0, le=10_000
    )


class ScheduleList(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``schedule_list``: none."""


class ScheduleDelete(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``schedule_delete``."""

    id: str = Field(description="Id of the schedule", max_length=64)


async def schedule_create(context: ToolContext, call: ScheduleCreate) -> ToolResult:
    """Have the agent told something at a time, with its own rights.

    Raises:
        InvalidInput: It is never due.
        Conflict: The agent has as many as it may, or they may spend too much.
    """
    from ..background.errands import SessionMode
    from ..orchestration import orchestration_of
    from .drafts import blank, micro, shown
    from .spoken import when_of

    agent, host = _agent(context), context.host
    draft = blank(host, context.principal)
    when = when_of(call.when, call.zone)
    if when.every:
        when = replace(when, anchor=float(floor(host.clock.time())))
    errand = replace(
        draft.errand,
        agent_id=agent.id,
        prompt=call.prompt,
        session=SessionMode(call.session),
        allowance_micro_usd=micro(call.allowance_usd),
        labels=context.labels,
        depth=context.depth,
    )
    draft = replace(draft, name=call.name, when=when, errand=errand)
    made = await orchestration_of(host).schedules.create(context, draft)
    return ToolResult(structured={**shown(made)})


async def schedule_list(context: ToolContext, _: ScheduleList) -> ToolResult:
    """Return the schedules of the agent that calls, as JSON."""
    from ..orchestration import orchestration_of
    from .drafts import shown

    agent = _agent(context)
    found = await orchestration_of(context.host).schedules.list()
    own = [each for each in found if each.errand.agent_id == agent.id]
    labels = frozenset[str]().union(*(each.errand.labels for each in own))
    rows = [{**shown(each)} for each in own]
    return ToolResult(json.dumps(rows, ensure_ascii=False), labels=labels)


async def schedule_delete(context: ToolContext, call: ScheduleDelete) -> ToolResult:
    """Delete a schedule that the agent has made for itself.

    Raises:
        NotFound: There is none.
        Denied: Somebody else has made it.
    """
    from ..orchestration import orchestration_of

    agent = _agent(context)
    schedules = orchestration_of(context.host).schedules
    schedule = await schedules.get(call.id)
    if schedule.errand.agent_id != agent.id or not schedule.by_agent:
        raise Denied("you delete only schedules that you have made; ask a person")
    await schedules.delete(context, schedule)
    return ToolResult(f"deleted {call.id}")


def _agent(context: ToolContext) -> AgentView:
    if context.agent is None:
        raise InvalidInput(
            "", "only an agent has schedules of its own; none is calling"
        )
    return context.agent


def schedule_tools() -> Iterable[ToolSpec]:
    """Give the tools."""
    yield ToolSpec(
        "schedule_create",
        "Have yourself told something at a time, once or again and again.",
        ScheduleCreate,
        Effect.WRITE,
        schedule_create,
    )
    yield ToolSpec(
        "schedule_list",
        "List the schedules at which you are told something.",
        ScheduleList,
        Effect.READ,
        schedule_list,
        idempotent=True,
    )
    yield ToolSpec(
        "schedule_delete",
        "Delete a schedule that you have made.",
        ScheduleDelete,
        Effect.WRITE,
        schedule_delete,
    )
