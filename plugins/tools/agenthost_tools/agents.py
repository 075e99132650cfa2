"""Speak to other agents: ``agent_list`` and ``agent_call``."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agenthost import Effect, ToolContext, ToolResult, ToolSpec, authorize, hookimpl
from pydantic import BaseModel, Field

CALL_TIMEOUT = 600.0
LONGEST_MESSAGE = 64 * 1024


class AgentList(BaseModel, extra="forbid"):
    """Arguments of ``agent_list``: none."""


class AgentCall(BaseModel, extra="forbid"):
    """Arguments of ``agent_call``."""

    agent_id: str = Field(description="Id or name of the agent to ask")
    message: str = Field(
        description="What to say to it", min_length=1, max_length=LONGEST_MESSAGE
    )


async def agent_list(context: ToolContext, _: AgentList) -> ToolResult:
    """Return id, name, state and model of every agent, as JSON."""
    rows = [
        {
            "id": agent.id,
            "name": agent.name,
            "state": agent.state,
            "model": "/".join(context.host.agents.model_of(agent)),
        }
        for agent in context.host.agents.list()
    ]
    return ToolResult(json.dumps(rows, ensure_ascii=False))


async def agent_call(context: ToolContext, call: AgentCall) -> ToolResult:
    """Ask another agent and return its answer.

    Raises:
        NotFound: There is no such agent.
        Denied: This agent may not send it messages.
    """
    other = context.host.agents.find(call.agent_id)
    authorize(context.principal, "agent_message", other.name)
    answer = await context.host.turns.call_agent(context, other.id, call.message)
    return ToolResult(answer.text, labels=answer.labels)


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer the agent tools."""
    yield ToolSpec(
        "agent_list",
        "List the agents of this daemon.",
        AgentList,
        Effect.READ,
        agent_list,
        idempotent=True,
    )
    yield ToolSpec(
        "agent_call",
        "Ask another agent and wait for its answer.",
        AgentCall,
        Effect.EXTERNAL,
        agent_call,
        timeout=CALL_TIMEOUT,
        aliases=("agent_send",),
    )
