"""Sessions: conversations read, begun, renamed, archived, forked, deleted."""

from __future__ import annotations

from uuid import UUID

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    Conflict,
    Host,
    NotFound,
    Reply,
    RouteGroup,
    Session,
    SessionFilter,
    TurnOptions,
    authorize,
    estimate_tokens,
    timestamp,
)

from .attachments import asked_with
from .exports import export
from .keeping import shown
from .messages import COST, result_body
from .session_shapes import (
    ChangeSession,
    ExportQuery,
    ForkedSession,
    ForkSession,
    OpenSession,
    SessionActivated,
    SessionItem,
    SessionList,
    SessionsQuery,
    WholeSession,
)
from .shapes import (
    Compacted,
    SessionDeleted,
    SessionDetail,
    SessionMessage,
    SessionReset,
)
from .transcript import visible

routes = RouteGroup("sessions")

COMPACT_COST = 30


@routes.get(
    "/api/agents/<agent_id>/session",
    scope="sessions:read",
    answer=SessionDetail,
    direct=True,
)
async def get_session(call: Call, agent_id: UUID) -> Answer:
    """Show the agent's conversation; the token count is an estimate of its size."""
    session = await call.host.sessions.of_agent(str(agent_id))
    messages, tokens = await _conversation(call.host, session)
    return {
        "session_id": session.id,
        "agent_id": session.agent_id,
        "message_count": len(messages),
        "context_window_tokens": tokens,
        "messages": messages,
    }


@routes.post(
    "/api/agents/<agent_id>/session/reset",
    scope="sessions:write",
    answer=SessionReset,
    direct=True,
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
    direct=True,
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


@routes.post(
    "/api/agents/<agent_id>/sessions",
    scope="sessions:write",
    body=OpenSession,
    answer=SessionItem,
    status=201,
    direct=True,
)
async def open_session(call: Call, agent_id: UUID, body: OpenSession) -> Answer:
    """Open a session beside the agent's own, or the one that has the key already."""
    opened = await call.host.sessions.open(
        str(agent_id), body.key, ephemeral=body.ephemeral
    )
    return item_of(call.host, opened)


@routes.get(
    "/api/sessions",
    scope="sessions:read",
    query=SessionsQuery,
    answer=SessionList,
    direct=True,
)
async def list_sessions(call: Call, query: SessionsQuery) -> Answer:
    """List or search the sessions of all agents, archived ones too, oldest first."""
    wanted = SessionFilter(
        agent_id=str(query.agent or ""),
        archived=query.archived,
        text=query.q.strip(),
        newest=query.order == "newest",
        limit=query.limit or 0,
        after=str(query.after or ""),
    )
    found = await call.host.sessions.list(wanted)
    # Who was deleted while it was read is in no list.
    known = {agent.id for agent in call.host.agents.list()}
    there = [session for session in found if session.agent_id in known]
    return {"sessions": [item_of(call.host, session) for session in there]}


@routes.get(
    "/api/sessions/<session_id>",
    scope="sessions:read",
    answer=WholeSession,
    direct=True,
)
async def read_session(call: Call, session_id: UUID) -> Answer:
    """Show a session with its messages."""
    session = await call.host.sessions.get(str(session_id))
    messages, tokens = await _conversation(call.host, session)
    return {
        **item_of(call.host, session),
        "message_count": len(messages),
        "ephemeral": session.ephemeral,
        "context_window_tokens": tokens,
        "messages": messages,
    }


@routes.patch(
    "/api/sessions/<session_id>",
    scope="sessions:write",
    body=ChangeSession,
    answer=SessionItem,
    direct=True,
)
async def change_session(call: Call, session_id: UUID, body: ChangeSession) -> Answer:
    """Rename a session, put it into the archive or take it out.

    The session an agent goes on in cannot be archived: activate another first.
    """
    sessions, id_ = call.host.sessions, str(session_id)
    if body.archived is not None:
        await sessions.archive(id_, on=body.archived)
    if body.title is not None:
        await sessions.rename(id_, body.title)
    return item_of(call.host, await sessions.get(id_))


@routes.post(
    "/api/sessions/<session_id>/activate",
    scope="sessions:write",
    answer=SessionActivated,
    direct=True,
)
async def activate_session(call: Call, session_id: UUID) -> Answer:
    """Let the agent go on in this session; its present one is archived.

    What runs or waits there is stopped, as a reset does.
    """
    session = await call.host.sessions.get(str(session_id))
    agent = call.host.agents.get(session.agent_id)
    if agent.session_id != session.id:
        agent = await call.host.turns.reset(agent, session.id, keep=True)
    if agent.session_id != session.id:
        raise Conflict("the agent went on in another session meanwhile; try again")
    return {"status": "activated", "agent_id": agent.id, "session_id": session.id}


@routes.post(
    "/api/sessions/<session_id>/fork",
    scope="sessions:write",
    cost=COST,
    body=ForkSession,
    answer=ForkedSession,
    status=201,
    direct=True,
)
async def fork_session(call: Call, session_id: UUID, body: ForkSession) -> Answer:
    """Begin a session with what stands in this one before a message, or with all.

    To edit a message, fork at it and ask anew; to ask again, ask the same. The
    session stays as it is.
    """
    host, message, context = call.host, None, call.context
    session = await host.sessions.get(str(session_id))
    agent = host.agents.get(session.agent_id)
    if body.message is not None or body.files:
        authorize(call.principal, "route", "agents:message")
        message, context = await asked_with(call, agent, body.message or "", body.files)
        agent.check_accepts_messages()
    forked = await host.sessions.fork(session, body.at_message)
    if message is None:
        return item_of(host, forked)
    options = TurnOptions(
        session_id=forked.id,
        max_cost_micro_usd=body.max_cost_micro_usd,
        settings=body.settings,
    )
    try:
        turn = host.turns.start(context, agent, message, options)
        result = await turn.result()
    except AgentHostError as error:
        # The fork is there: the message can be sent to it again.
        error.facts = {**error.facts, "session_id": forked.id}
        raise
    forked = await host.sessions.get(forked.id)
    return {**item_of(host, forked), "answer": result_body(result)}


@routes.get(
    "/api/sessions/<session_id>/export",
    scope="sessions:read",
    cost=COMPACT_COST,
    query=ExportQuery,
    media="*/*",
    direct=True,
)
async def export_session(call: Call, session_id: UUID, query: ExportQuery) -> Answer:
    """Write a session down as a file, summarised messages in full."""
    session = await call.host.sessions.get(str(session_id))
    text = await export(call.host, session, query.format)
    kind, suffix = {
        "json": ("application/json", "json"),
        "markdown": ("text/markdown; charset=utf-8", "md"),
    }[query.format]
    name = f'attachment; filename="session-{session.id}.{suffix}"'
    headers = {"content-type": kind, "content-disposition": name}
    return Reply(text, headers=headers)


@routes.delete(
    "/api/sessions/<session_id>",
    scope="sessions:write",
    answer=SessionDeleted,
    direct=True,
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
        if agent is not None:
            await host.turns.stop(agent, "the session was deleted", session.id)
        await host.sessions.erase(session.id)
    return {"status": "deleted", "session_id": session.id}


def item_of(host: Host, session: Session) -> SessionItem:
    """Show a session without its messages."""
    agent = host.agents.get(session.agent_id)
    item: SessionItem = {
        "id": session.id,
        "agent_id": agent.id,
        "agent_name": agent.name,
        "message_count": session.message_count,
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
        "title": session.title,
        "archived": session.archived_at is not None,
        "current": agent.session_id == session.id,
    }
    if session.key is not None:
        item["key"] = session.key
    if session.parent_id is not None:
        item["parent_id"] = session.parent_id
    if session.at_message is not None:
        item["at_message"] = session.at_message
    return item


async def _conversation(
    host: Host, session: Session
) -> tuple[list[SessionMessage], int]:
    """Read what is shown of a session, and estimate its tokens."""
    entries, pinned = await shown(host, session)
    turns = await host.sessions.turns(session.id)
    history = [entry.message for entry in entries]
    if session.summary:
        history.insert(0, session.summary)
    return visible(session, entries, turns, pinned), estimate_tokens(history)
