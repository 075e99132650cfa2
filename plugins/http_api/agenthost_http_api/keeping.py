"""What summaries leave alone: messages kept whole, and summaries taken back."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from agenthost import (
    Agent,
    Answer,
    Call,
    Entry,
    Host,
    InvalidInput,
    NotFound,
    Role,
    RouteGroup,
    Session,
    ToolContext,
)

from .session_shapes import PinnedMessages
from .shapes import Compacted

routes = RouteGroup("http_api.keeping")

DIGITS = 18
NOTHING = "nothing to undo: no summary stands before this conversation"
UNDONE = (
    "the latest summary is taken back; the conversation is summarised again when the "
    "model's window asks for it, or when as much again has been said"
)


@routes.put(
    "/api/sessions/<session_id>/pins/<message>",
    scope="sessions:write",
    answer=PinnedMessages,
    direct=True,
)
async def pin_message(call: Call, session_id: UUID, message: int) -> Answer:
    """Keep a message whole when the conversation is summarised; a call's result too."""
    return await _set(call.host, str(session_id), message, on=True)


@routes.delete(
    "/api/sessions/<session_id>/pins/<message>",
    scope="sessions:write",
    answer=PinnedMessages,
    direct=True,
)
async def unpin_message(call: Call, session_id: UUID, message: int) -> Answer:
    """Let a message be summarised with the others again."""
    return await _set(call.host, str(session_id), message, on=False)


@routes.post(
    "/api/agents/<agent_id>/session/compact/undo",
    scope="sessions:write",
    answer=Compacted,
    direct=True,
)
async def undo_compaction(call: Call, agent_id: UUID) -> Answer:
    """Take the latest summary of the agent's conversation back; nothing was deleted."""
    agent = call.host.agents.get(str(agent_id))
    done = await _undone(call.host, agent)
    status = "undone" if done else "ok"
    return {"status": status, "message": UNDONE if done else NOTHING}


async def shown(host: Host, session: Session) -> tuple[Sequence[Entry], set[int]]:
    """Read what is shown of a session behind its summary, and what is pinned of it."""
    entries = await host.sessions.entries(session)
    pinned = await host.sessions.pinned(session.id)
    there = {each.seq for each in entries}
    whole = [each for each in pinned if each.seq not in there]
    return [*whole, *entries], {each.seq for each in pinned}


async def undo(call: ToolContext, agent: Agent, _: str) -> str:
    """Do ``/undo``."""
    text = UNDONE if await _undone(call.host, agent) else NOTHING
    return f"{text[0].upper()}{text[1:]}."


async def pin(call: ToolContext, agent: Agent, named: str) -> str:
    """Do ``/pin``: a message by its number, or the last answer."""
    session, message = await _named(call.host, agent, named)
    await _set(call.host, session.id, message, on=True)
    return f"Message {message} stays whole; /unpin {message} ends that."


async def unpin(call: ToolContext, agent: Agent, named: str) -> str:
    """Do ``/unpin``: a message by its number, or the last answer."""
    session, message = await _named(call.host, agent, named)
    await _set(call.host, session.id, message, on=False)
    return f"Message {message} may be summarised with the others."


async def _named(host: Host, agent: Agent, named: str) -> tuple[Session, int]:
    session = await host.sessions.of_agent(agent.id)
    if named:
        if not (named.isascii() and named.isdigit() and len(named) <= DIGITS):
            raise InvalidInput("message", "must be a message's number; or leave it out")
        return session, int(named)
    for entry in reversed(await host.sessions.entries(session)):
        if entry.message.role is Role.ASSISTANT and entry.message.text:
            return session, entry.seq
    raise NotFound("message", "an answer in this conversation")


async def _set(
    host: Host, session_id: str, message: int, *, on: bool
) -> PinnedMessages:
    await host.sessions.get(session_id)
    await host.sessions.pin(session_id, message, on=on)
    pinned = await host.sessions.pinned(session_id)
    return {"session_id": session_id, "pinned": [each.seq for each in pinned]}


async def _undone(host: Host, agent: Agent) -> bool:
    async def work(session_id: str) -> bool:
        return await host.sessions.restore(await host.sessions.get(session_id))

    return await host.turns.apart(agent, work)
