"""Sessions: read, reset, compact, list and delete conversations."""

from __future__ import annotations

from uuid import UUID

from agenthost import (
    Answer,
    Call,
    Image,
    Message,
    NotFound,
    Role,
    RouteGroup,
    ToolOutput,
    estimate_tokens,
    timestamp,
)

from .shapes import SessionDetail, SessionList, SessionMessage, Status, ToolEntry

routes = RouteGroup("http_api.sessions")

COMPACT_COST = 30


def visible(history: list[Message]) -> list[SessionMessage]:
    """Show a conversation: results stand in the message that asked for them."""
    shown: list[SessionMessage] = []
    open_calls: dict[str, ToolEntry] = {}
    for message in history:
        if message.role is Role.TOOL:
            for part in message.parts:
                if isinstance(part, ToolOutput) and part.id in open_calls:
                    open_calls[part.id]["result"] = part.text
                    open_calls[part.id]["is_error"] = part.is_error
            continue
        entry: SessionMessage = {
            "role": message.role.value.capitalize(),
            "content": message.text,
        }
        calls: dict[str, ToolEntry] = {
            use.id: {
                "name": use.name,
                "input": dict(use.arguments),
                "result": None,
                "is_error": False,
            }
            for use in message.tool_uses
        }
        if calls:
            entry["tools"] = list(calls.values())
            open_calls = calls
        images = sum(isinstance(part, Image) for part in message.parts)
        if images:
            entry["images"] = images
        shown.append(entry)
    return shown


@routes.get(
    "/api/agents/<agent_id>/session", scope="sessions:read", answer=SessionDetail
)
async def get_session(call: Call, agent_id: UUID) -> Answer:
    """Show the agent's conversation; the token count is an estimate of its size."""
    daemon = call.daemon
    agent = daemon.agents.get(str(agent_id))
    session = await daemon.sessions.get(agent.session_id)
    history = await daemon.sessions.history(session)
    messages = visible(history)
    return {
        "session_id": session.id,
        "agent_id": agent.id,
        "message_count": len(messages),
        "context_window_tokens": estimate_tokens(history),
        "messages": messages,
    }


@routes.post(
    "/api/agents/<agent_id>/session/reset", scope="sessions:write", answer=Status
)
async def reset_session(call: Call, agent_id: UUID) -> Answer:
    """Stop the running turn and give the agent an empty session."""
    agent = call.daemon.agents.get(str(agent_id))
    fresh = await call.daemon.supervisor.reset_session(agent)
    return {
        "status": "reset",
        "agent_id": agent.id,
        "new_session_id": fresh.session_id,
    }


@routes.post(
    "/api/agents/<agent_id>/session/compact",
    scope="sessions:write",
    cost=COMPACT_COST,
    answer=Status,
)
async def compact_session(call: Call, agent_id: UUID) -> Answer:
    """Let a summary stand for the older messages, when there are enough of them."""
    agent = call.daemon.agents.get(str(agent_id))
    outcome = await call.daemon.turns.compact(agent)
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
            for item in await call.daemon.sessions.list()
        ]
    }


@routes.delete("/api/sessions/<session_id>", scope="sessions:write", answer=Status)
async def delete_session(call: Call, session_id: UUID) -> Answer:
    """Delete a session and its history; its agent gets a fresh one."""
    session = await call.daemon.sessions.get(str(session_id))
    agent = call.daemon.agents.get(session.agent_id)
    if agent.session_id != session.id:
        raise NotFound("session", session.id)
    await call.daemon.supervisor.reset_session(agent)
    return {"status": "deleted", "session_id": session.id}
