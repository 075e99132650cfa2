"""The archive: sessions that rest, and the one that an agent goes on in."""

from __future__ import annotations

from agenthost import Conflict, NotFound, Session
from sqlalchemy import Connection, RowMapping, bindparam, select, update

from .session_rows import BY_ID, BY_KEY, erase, open_session
from .tables import agents, sessions

_OWNED = select(agents.c.id).where(agents.c.session_id == bindparam("session"))


def refuse_own(connection: Connection, session_id: str) -> None:
    """Refuse to do something to a session that an agent goes on in.

    Raises:
        Conflict: It is an agent's own.
    """
    if connection.execute(_OWNED, {"session": session_id}).first() is not None:
        raise Conflict(
            "the session is its agent's own; reset it, or activate another first"
        )


def archive(connection: Connection, session_id: str, now: float) -> None:
    """Put a session into the archive.

    Raises:
        NotFound: There is none.
        Conflict: It is an agent's own.
    """
    refuse_own(connection, session_id)
    if _row(connection, session_id)["archived_at"] is None:
        _set_archived(connection, session_id, now)


def take_out(connection: Connection, session_id: str) -> None:
    """Take a session out of the archive.

    Raises:
        NotFound: There is none.
        Conflict: Its key has another session by now.
    """
    row = _row(connection, session_id)
    by = {"agent": row["agent_id"], "key": row["key"]}
    known = row["key"] and connection.execute(BY_KEY, by).mappings().first()
    if known and known["id"] != session_id:
        raise Conflict("another session has its key by now; archive that one first")
    _set_archived(connection, session_id, None)


def put_away(connection: Connection, session_id: str, now: float) -> None:
    """Archive what an agent had said; of an empty session nothing is kept."""
    if _row(connection, session_id)["next_seq"]:
        _set_archived(connection, session_id, now)
    else:
        erase(connection, session_id)


def take_up(connection: Connection, session: Session) -> None:
    """Make ready a session that its agent goes on in: an old one, or this new one.

    Raises:
        NotFound: It is another agent's, or ephemeral.
        Conflict: Its key has another session by now.
    """
    row = connection.execute(BY_ID, {"id": session.id}).mappings().first()
    if row is None:
        open_session(connection, session)
        return
    if row["agent_id"] != session.agent_id or row["ephemeral"]:
        raise NotFound("session", session.id)
    take_out(connection, session.id)


def _row(connection: Connection, session_id: str) -> RowMapping:
    row = connection.execute(BY_ID, {"id": session_id}).mappings().first()
    if row is None:
        raise NotFound("session", session_id)
    return row


def _set_archived(connection: Connection, session_id: str, at: float | None) -> None:
    this = update(sessions).where(sessions.c.id == session_id)
    connection.execute(this.values(archived_at=at))
