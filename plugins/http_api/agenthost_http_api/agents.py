"""Agents: list, make, change, stop and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from uuid import UUID

from agenthost import (
    Agent,
    AgentMode,
    Answer,
    Call,
    Host,
    Reply,
    RouteGroup,
    timestamp,
)
from pydantic import Field
from typing_extensions import TypedDict

from .making import CreateAgent, manifest_of
from .shapes import (
    AgentChanged,
    AgentDetail,
    AgentKilled,
    AgentSummary,
    Body,
    Created,
    ModeChanged,
    ModelChanged,
    SetMode,
    SetModel,
    Stopped,
    StopQuery,
    UpdateAgent,
)

routes = RouteGroup("agents")


class SuspendAgent(Body):
    """``POST /api/agents/{id}/suspend``."""

    reason: str = Field(
        "", max_length=500, description="Why, for whoever finds it suspended"
    )


class StateChanged(TypedDict):
    """An agent was suspended or resumed."""

    status: str
    agent_id: str
    state: str


MANIFEST_BODY = 3 * 1024 * 1024
# Lists are written again and again; when an agent was made never changes.
_moment = lru_cache(maxsize=4_096)(timestamp)


def summary(host: Host, agent: Agent) -> AgentSummary:
    """Describe an agent for a list."""
    provider, model = host.agents.model_of(agent)
    return {
        "id": agent.id,
        "name": agent.name,
        "state": agent.state.value,
        "created_at": _moment(agent.created_at),
        "model_provider": provider,
        "model_name": model,
        "mode": agent.mode.value,
    }


@routes.get(
    "/api/agents", scope="agents:read", cost=2, answer=list[AgentSummary], direct=True
)
async def list_agents(call: Call) -> Answer:
    """List all agents, oldest first."""
    return [summary(call.host, agent) for agent in call.host.agents.list()]


@routes.get(
    "/api/agents/<agent_id>", scope="agents:read", answer=AgentDetail, direct=True
)
async def get_agent(call: Call, agent_id: UUID) -> Answer:
    """Show one agent."""
    agent = call.host.agents.get(str(agent_id))
    provider, model = call.host.agents.model_of(agent)
    grants = call.host.agents.grants_of(agent.manifest)
    detail: AgentDetail = {
        "id": agent.id,
        "name": agent.name,
        "state": agent.state.value,
        "created_at": timestamp(agent.created_at),
        "session_id": agent.session_id,
        "model": {"provider": provider, "model": model},
        "capabilities": {
            "tools": list(grants.get("tool", ())),
            "network": list(grants.get("network", ())),
        },
        "description": agent.manifest.description,
        "tags": list(agent.manifest.tags),
        "mode": agent.mode.value,
        "system_prompt": agent.manifest.model.system_prompt,
    }
    if agent.reason:
        detail["reason"] = agent.reason
    if agent.parent:
        detail["parent"] = agent.parent
    return detail


@routes.post(
    "/api/agents",
    scope="agents:write",
    cost=50,
    body=CreateAgent,
    answer=Created,
    status=201,
    body_limit=MANIFEST_BODY,
    direct=True,
)
async def create_agent(call: Call, body: CreateAgent) -> Answer:
    """Create an agent from its manifest, or from a template."""
    text = await manifest_of(call, body)
    agent, warnings = await call.host.agents.spawn(call.context, text)
    return Reply({"agent_id": agent.id, "name": agent.name, "warnings": warnings}, 201)


@routes.put(
    "/api/agents/<agent_id>/update",
    scope="agents:write",
    cost=10,
    body=UpdateAgent,
    answer=AgentChanged,
    direct=True,
)
async def update_agent(call: Call, agent_id: UUID, body: UpdateAgent) -> Answer:
    """Change an agent's description, system prompt or tags."""
    agent = call.host.agents.get(str(agent_id))
    await call.host.agents.change(call.context, agent, _changes(body))
    return {"status": "updated", "agent_id": agent.id}


def _changes(body: UpdateAgent) -> Mapping[str, object]:
    """The keys of the manifest that a request gives another value."""
    changes: dict[str, object] = {}
    if body.description is not None:
        changes["description"] = body.description
    if body.tags is not None:
        changes["tags"] = tuple(body.tags)
    if body.system_prompt is not None:
        changes["model"] = {"system_prompt": body.system_prompt}
    return changes


@routes.put(
    "/api/agents/<agent_id>/mode",
    scope="agents:write",
    body=SetMode,
    answer=ModeChanged,
    direct=True,
)
async def set_mode(call: Call, agent_id: UUID, body: SetMode) -> Answer:
    """Pin the agent's model (Stable), or let it follow the configuration (Normal)."""
    host = call.host
    agent = host.agents.get(str(agent_id))
    await host.agents.set_mode(call.context, agent, AgentMode(body.mode))
    return {"status": "updated", "mode": body.mode, "agent_id": agent.id}


@routes.put(
    "/api/agents/<agent_id>/model",
    scope="agents:write",
    body=SetModel,
    answer=ModelChanged,
    direct=True,
)
async def set_model(call: Call, agent_id: UUID, body: SetModel) -> Answer:
    """Give the agent another model; aliases are resolved."""
    agent = call.host.agents.get(str(agent_id))
    choice = await call.host.agents.set_model(
        call.context, agent, body.provider, body.model
    )
    provider, model = choice.target.names
    answer: ModelChanged = {"status": "updated", "model": model, "provider": provider}
    if choice.notices:
        answer["message"] = "; ".join(choice.notices)
    return answer


@routes.post(
    "/api/agents/<agent_id>/stop",
    scope="agents:write",
    query=StopQuery,
    answer=Stopped,
    direct=True,
)
async def stop_agent(call: Call, agent_id: UUID, query: StopQuery) -> Answer:
    """Stop what the agent is doing; what it said so far is kept.

    What runs in its own session, or in the one that is named, ends before this
    answers; messages that wait there go on. ``all=true`` ends those too.
    """
    agent, turns = call.host.agents.get(str(agent_id)), call.host.turns
    if query.all:
        stopped = await turns.stop_all(agent.id, "stopped by request")
    else:
        session = str(query.session or agent.session_id)
        stopped = await turns.stop(agent, "stopped by request", session)
    message = f"{stopped} turn(s) stopped" if stopped else "no turn was running"
    return {"status": "stopped", "message": message}


@routes.post(
    "/api/agents/<agent_id>/suspend",
    scope="agents:write",
    body=SuspendAgent,
    answer=StateChanged,
    direct=True,
)
async def suspend_agent(call: Call, agent_id: UUID, body: SuspendAgent) -> Answer:
    """Stop what the agent is doing; messages to it are 409 until it is resumed."""
    agents = call.host.agents
    agent = agents.get(str(agent_id))
    return _standing(await agents.suspend(call.context, agent, body.reason))


@routes.post(
    "/api/agents/<agent_id>/resume",
    scope="agents:write",
    answer=StateChanged,
    direct=True,
)
async def resume_agent(call: Call, agent_id: UUID) -> Answer:
    """Let a suspended or crashed agent take messages again."""
    agents = call.host.agents
    return _standing(await agents.resume(call.context, agents.get(str(agent_id))))


def _standing(agent: Agent) -> StateChanged:
    return {"status": "updated", "agent_id": agent.id, "state": agent.state.value}


@routes.delete(
    "/api/agents/<agent_id>", scope="agents:write", answer=AgentKilled, direct=True
)
async def delete_agent(call: Call, agent_id: UUID) -> Answer:
    """Stop the agent and delete it with its sessions, memory and workspace."""
    agent = call.host.agents.get(str(agent_id))
    await call.host.agents.delete(call.context, agent)
    return {"status": "killed", "agent_id": agent.id}
