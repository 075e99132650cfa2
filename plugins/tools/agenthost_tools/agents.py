"""Other agents: list them, ask them, make them and end them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agenthost import (
    Blocked,
    Effect,
    InvalidInput,
    ToolContext,
    ToolResult,
    ToolSpec,
    authorize,
    hookimpl,
)
from pydantic import BaseModel, Field

CALL_TIMEOUT = 600.0
LONGEST_MESSAGE = 64 * 1024
LONGEST_MANIFEST = 64 * 1024


class AgentList(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``agent_list``: none."""


class AgentCall(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``agent_call``."""

    agent_id: str = Field(description="Id or name of the agent to ask")
    message: str = Field(
        description="What to say to it", min_length=1, max_length=LONGEST_MESSAGE
    )


class AgentSpawn(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``agent_spawn``."""

    manifest_toml: str = Field(
        description="Its manifest, TOML: name, description, [model], [capabilities]",
        min_length=1,
        max_length=LONGEST_MANIFEST,
    )


class AgentKill(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``agent_kill``."""

    agent_id: str = Field(description="Id or name of an agent that you have made")


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


async def agent_spawn(context: ToolContext, call: AgentSpawn) -> ToolResult:
    """Make an agent with at most the rights, and of the budget, of the one that asks.

    Raises:
        InvalidInput: The manifest is malformed, or no agent asks.
        Conflict: The name is taken, or this agent has as many children as it may.
        Denied: It may make none, or asks for more than it has itself.
    """
    if context.agent is None:
        raise InvalidInput("", "only an agent makes one so; use POST /api/agents")
    authorize(context.principal, "agent_spawn", "agent")
    agents = context.host.agents
    agent, warnings = await agents.spawn(context, call.manifest_toml)
    made = {"agent_id": agent.id, "name": agent.name, "warnings": [*warnings]}
    return ToolResult(json.dumps(made, ensure_ascii=False))


async def agent_kill(context: ToolContext, call: AgentKill) -> ToolResult:
    """Delete an agent that this one has made, or that comes from one of those.

    Raises:
        NotFound: There is no such agent.
        Denied: It does not come from this one.
    """
    agents = context.host.agents
    agent = agents.find(call.agent_id)
    own = context.agent.id if context.agent is not None else ""
    if own not in [each.id for each in agents.above(agent.id)[1:]]:
        raise Blocked(f"agent {agent.name!r} does not come from you; leave it")
    await agents.delete(context, agent)
    return ToolResult(json.dumps({"status": "killed", "agent_id": agent.id}))


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
    yield ToolSpec(
        "agent_spawn",
        "Make an agent, which can do no more than you and spends of your budget.",
        AgentSpawn,
        Effect.WRITE,
        agent_spawn,
    )
    yield ToolSpec(
        "agent_kill",
        "Delete an agent that you have made, with all that it has made.",
        AgentKill,
        Effect.WRITE,
        agent_kill,
    )
