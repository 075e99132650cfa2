"""What is written into sessions: functions of a connection in a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenthost import (
    NOBODY,
    Message,
    NotFound,
    Role,
    Row,
    Session,
    Step,
    TurnState,
    Writer,
)
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from .codec import digest_of, dump_labels, dump_parts, load_parts
from .tables import agents, messages, pins, sessions, tool_calls, turns, views
from .texts import forget_newest, texts
from .words import folded, title_of
from .writers import CURRENT, HELD, by, check_held

SUPERSEDED = 2
"""``partial`` of what a turn was saying when it broke off, once it said it anew."""

BY_ID = select(sessions).where(sessions.c.id == bindparam("id"))
BY_KEY = select(sessions).where(
    sessions.c.agent_id == bindparam("agent"),
    sessions.c.key == bindparam("key"),
    sessions.c.archived_at.is_(None),
)
_ROOT = select(func.coalesce(sessions.c.root_id, sessions.c.id)).where(
    sessions.c.id == bindparam("of")
)
_OPENED = (
    "id",
    "agent_id",
    "ephemeral",
    "thinking",
    "message_count",
    "first_seq",
    "next_seq",
    "summary",
    "created_at",
    "updated_at",
    "key",
    "title",
    "title_folded",
    "parent_id",
    "at_message",
    "root_id",
    "node",
    "epoch",
)
# Its agent may have gone meanwhile: that is looked at in the same statement.
_OPEN = (
    insert(sessions)
    .from_select(
        _OPENED,
        select(
            *(bindparam(name, type_=sessions.c[name].type) for name in _OPENED)
        ).where(exists().where(agents.c.id == bindparam("agent_id"))),
    )
    .execution_options(preserve_rowcount=True)
)
_INSERT = insert(messages)
_APPEND = (
    update(sessions)
    .where(sessions.c.id == bindparam("session"))
    .values(
        message_count=sessions.c.message_count + bindparam("visible"),
        next_seq=bindparam("next"),
        updated_at=bindparam("now"),
    )
)
_BEGIN = _APPEND.where(CURRENT)
_GO_ON = _APPEND.where(HELD)
_NAME = (
    update(sessions)
    .where(sessions.c.id == bindparam("session"), sessions.c.title == "")
    .values(title=bindparam("new_title"), title_folded=bindparam("new_folded"))
)


def session_of(row: Row | RowMapping) -> Session:
    """Read a session's row."""
    summary = row["summary"]
    return Session(
        id=row["id"],
        agent_id=row["agent_id"],
        created_at=row["created_at"],
        thinking=bool(row["thinking"]),
        first_seq=row["first_seq"],
        next_seq=row["next_seq"],
        summary=Message(Role.USER, load_parts(summary)) if summary else None,
        key=row["key"],
        title=row["title"],
        ephemeral=bool(row["ephemeral"]),
        archived_at=row["archived_at"],
        parent_id=row["parent_id"],
        at_message=row["at_message"],
        message_count=row["message_count"],
        updated_at=row["updated_at"],
        undone_at=row["undone_at"],
    )


def open_session(
    connection: Connection, session: Session, writer: Writer = NOBODY
) -> None:
    """Write a new session; who made one without a key is to be known at the next start.

    Raises:
        NotFound: Its agent has been deleted.
    """
    row = {
        "id": session.id,
        "agent_id": session.agent_id,
        "ephemeral": int(session.ephemeral),
        "thinking": int(session.thinking),
        "message_count": session.message_count,
        "first_seq": session.first_seq,
        "next_seq": session.next_seq,
        "summary": dump_parts(session.summary) if session.summary else None,
        "created_at": session.created_at,
        "updated_at": session.created_at,
        "key": session.key,
        "title": session.title,
        "title_folded": folded(session.title),
        "parent_id": session.parent_id,
        "at_message": session.at_message,
        "root_id": _root_of(connection, session.parent_id),
        "node": writer.node,
        "epoch": writer.epoch,
    }
    if not connection.execute(_OPEN, row).rowcount:
        raise NotFound("agent", session.agent_id)


def find_or_open(connection: Connection, session: Session, writer: Writer) -> Session:
    """Give the session that has its key already, or write this one.

    Raises:
        NotFound: There is no such agent.
    """
    if session.key is not None:
        by = {"agent": session.agent_id, "key": session.key}
        known = connection.execute(BY_KEY, by).mappings().first()
        if known is not None:
            return session_of(known)
    open_session(connection, session, writer)
    return session


def append(connection: Connection, steps: Sequence[Step]) -> None:
    """Add the messages of a session's next steps, and count the visible ones.

    Raises:
        NotFound: The session has been deleted.
        Superseded: The turn is not the writer's, or its node has started again.
    """
    rows = [_row(step, step.message) for step in steps if step.message is not None]
    if not rows:
        return
    first, last = steps[0], rows[-1]
    begins = first.opened is not None
    statement, turn = (_BEGIN, {}) if begins else (_GO_ON, {"turn": first.turn_id})
    changed = connection.execute(
        statement,
        {
            **turn,
            **by(first.writer),
            "session": last["session_id"],
            "visible": sum(row["role"] != Role.TOOL for row in rows),
            "next": last["seq"] + 1,
            "now": last["created_at"],
        },
    )
    if not changed.rowcount:
        check_held(connection, first.writer, first.turn_id)
        raise NotFound("session", first.session_id)
    connection.execute(_INSERT, rows)
    if rows[0]["seq"] == 0:
        title = title_of(rows[0]["parts"])
        name = {"new_title": title, "new_folded": folded(title)}
        connection.execute(_NAME, {"session": last["session_id"], **name})


def _row(step: Step, message: Message) -> dict[str, Any]:
    parts, closed = dump_parts(message), step.closed
    return {
        "session_id": step.session_id,
        "seq": step.seq,
        "turn_id": step.turn_id,
        "role": message.role.value,
        "parts": parts,
        "digest": digest_of(parts),
        "partial": int(closed is not None and closed.state is not TurnState.DONE),
        "created_at": step.at,
        "behind": step.behind,
        "owner": step.owner,
        "labels": dump_labels(step.labels),
    }


def supersede(connection: Connection, step: Step) -> None:
    """Take what a turn was saying when it broke off out of its session."""
    broken_off = (
        messages.c.session_id == step.session_id,
        messages.c.turn_id == step.turn_id,
        messages.c.partial == 1,
    )
    found = select(messages.c.id, messages.c.role).where(*broken_off)
    rows = connection.execute(found).all()
    if ids := [row.id for row in rows]:
        # Stand-ins for the results of tools were never counted.
        counted = sum(row.role != Role.TOOL for row in rows)
        gone = messages.c.id.in_(ids)
        connection.execute(update(messages).where(gone).values(partial=SUPERSEDED))
        connection.execute(delete(texts).where(texts.c.id.in_(ids)))
        connection.execute(
            update(sessions)
            .where(sessions.c.id == step.session_id)
            .values(message_count=sessions.c.message_count - counted)
        )


def erase(connection: Connection, session_id: str) -> int:
    """Delete a session, its messages and its journal; count it."""
    return _ONE.run(connection, session_id)


def erase_of_agent(connection: Connection, agent_id: str) -> None:
    """Delete all sessions of an agent, archived and ephemeral ones too."""
    _ALL_OF_AGENT.run(connection, agent_id)


class _Erasure:
    """The statements that delete sessions with all that hangs on them, made once.

    Args:
        these: Which sessions; it has a parameter ``of``.
        shown: The turns that others show, too: those stay.
    """

    def __init__(
        self, these: ColumnElement[bool], shown: Select[Any] | None = None
    ) -> None:
        ids = select(sessions.c.id).where(these)
        spoken = select(messages.c.turn_id).where(messages.c.session_id.in_(ids))
        if shown is not None:
            spoken = spoken.where(messages.c.turn_id.not_in(shown))
        turn_ids = (tool_calls.c.turn_id, turns.c.id)
        hanging = (messages, pins, views, texts)
        self._hanging = (
            *(delete(turn.table).where(turn.in_(spoken)) for turn in turn_ids),
            *(delete(each).where(each.c.session_id.in_(ids)) for each in hanging),
        )
        self._rows = delete(sessions).where(these)

    def run(self, connection: Connection, of: str) -> int:
        """Delete them; count the sessions."""
        for statement in self._hanging:
            connection.execute(statement, {"of": of})
        forget_newest(connection)
        return connection.execute(self._rows, {"of": of}).rowcount


def _shown_by_kin() -> Select[Any]:
    """The turns that forks of a session show, or what it was forked from."""
    kin, theirs = sessions.alias("kin"), messages.alias("theirs")
    root = _ROOT.scalar_subquery()
    related = select(kin.c.id).where(
        or_(kin.c.root_id == root, kin.c.id == root), kin.c.id != bindparam("of")
    )
    shown = theirs.c.session_id.in_(related), theirs.c.turn_id.is_not(None)
    return select(theirs.c.turn_id).where(*shown)


_ONE = _Erasure(sessions.c.id == bindparam("of"), _shown_by_kin())
_ALL_OF_AGENT = _Erasure(sessions.c.agent_id == bindparam("of"))


def _root_of(connection: Connection, session_id: str | None) -> str | None:
    if session_id is None:
        return None
    return connection.execute(_ROOT, {"of": session_id}).scalar()
