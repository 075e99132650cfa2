"""Sessions: read, reset, compact, list and delete conversations."""

from __future__ import annotations

from uuid import UUID

from agenthost import (
    Answer,
    Call,
    NotFound,
    RouteGroup,
    estimate_tokens,
    timestamp,
)

from .shapes import Compacted, SessionDeleted, SessionDetail, SessionList, SessionReset
from .transcript import visible

routes = RouteGroup("sessions")

COMPACT_COST = 30


@routes.get(
    "/api/agents/<agent_id>/session", scope="sessions:read", answer=SessionDetail
)
async def get_session(call: Call, agent_id: UUID) -> Answer:
    """Show the agent's conversation; the token count is an estimate of its size."""
    sessions = call.host.sessions
    session = await sessions.of_agent(str(agent_id))
    entries = await sessions.entries(session)
    messages = visible(session, entries, await sessions.turns(session.id))
    history = [entry.message for entry in entries]
    if session.summary:
        history.insert(0, session.summary)
    return {
        "session_id": session.id,
        "agent_id": session.agent_id,
        "message_count": len(messages),
        "context_window_tokens": estimate_tokens(history),
        "messages": messages,
    }


@routes.post(
    "/api/agents/<agent_id>/session/reset", scope="sessions:write", answer=SessionReset
)
async def reset_session(call: Call, agent_id: UUID) -> Answer:
    """Stop the running turn and give the agent an empty session."""
    agent = call.host.agents.get(str(agent_id))
    fresh = await call.host.turns.reset(agent)
    return {
        "status": "reset",
        "agent_id": agent.id,
        "new_session_id": fresh.session_id,
    }


@routes.post(
    "/api/agents/<agent_id>/session/compact",
    scope="sessions:write",
    cost=COMPACT_COST,
    answer=Compacted,
)
async def compact_session(call: Call, agent_id: UUID) -> Answer:
    """Let a summary stand for the older messages, when there are enough of them."""
    agent = call.host.agents.get(str(agent_id))
    outcome = await call.host.compaction.of_agent(agent)
    if outcome.summarised:
        return {
            "status": "compacted",
            "message": f"{outcome.summarised} messages summarized, {outcome.kept} kept",
        }
    return {
        "status": "ok",
        "message": f"nothing to do: {outcome.kept} messages are below the threshold",
    }


@routes.get("/api/sessions", scope="sessions:read", answer=SessionList)
async def list_sessions(call: Call) -> Answer:
    """List the sessions of all agents, oldest first."""
    return {
        "sessions": [
            {
                "id": item.id,
                "agent_id": item.agent_id,
                "agent_name": item.agent_name,
                "message_count": item.message_count,
                "created_at": timestamp(item.created_at),
            }
            for item in await call.host.sessions.list()
        ]
    }


@routes.delete(
    "/api/sessions/<session_id>", scope="sessions:write", answer=SessionDeleted
)
async def delete_session(call: Call, session_id: UUID) -> Answer:
    """Delete a session and its history; an agent gets a fresh one for its own."""
    host = call.host
    session = await host.sessions.get(str(session_id))
    try:
        agent = host.agents.get(session.agent_id)
    except NotFound:
        agent = None
    if agent is not None and agent.session_id == session.id:
        await host.turns.reset(agent)
    else:
        await host.sessions.erase(session.id)
    return {"status": "deleted", "session_id": session.id}
