"""How a session is seen: from which message on, behind which summary, with which pins.

Nothing is deleted: a view says what of a session's messages is shown to its model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenthost import Conflict, InvalidInput, NotFound, Role, Session, ToolUse
from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from .codec import dump_labels, load_labels, load_parts
from .session_rows import BY_ID, SUPERSEDED
from .tables import LABELLED, messages, pins, sessions, views

MOST_PINS = 64
"""Messages of a session that are kept whole: they are sent with each question."""
LARGEST_PIN = 64 * 1024
"""Bytes of a row of them."""
LARGEST_SEQ = 2**31 - 1
"""What a column of numbers holds on every store."""

place = func.coalesce(messages.c.behind, messages.c.seq)
IS_PINNED = exists(
    select(pins.c.seq).where(
        pins.c.session_id == messages.c.session_id, pins.c.seq == messages.c.seq
    )
)
PINNED = (
    select(messages)
    .join(
        pins,
        and_(pins.c.session_id == messages.c.session_id, pins.c.seq == messages.c.seq),
    )
    .where(messages.c.session_id == bindparam("id"), messages.c.partial != SUPERSEDED)
)
_LATEST = (
    select(views)
    .where(views.c.session_id == bindparam("id"))
    .order_by(views.c.id.desc())
    .limit(1)
)
_ONE = select(messages).where(
    messages.c.session_id == bindparam("id"),
    messages.c.seq == bindparam("seq"),
    messages.c.partial != SUPERSEDED,
)


def see(connection: Connection, session: Session, row: Mapping[str, Any]) -> bool:
    """Let a summary stand for what is before a message, and keep how it was before.

    It tells whether the session is still as it was read.
    """
    known = connection.execute(BY_ID, {"id": session.id}).mappings().first()
    if known is None or known["first_seq"] != session.first_seq:
        return False
    before = {"first_seq": known["first_seq"], "summary": known["summary"]}
    whence = {"owner": known["owner"], "labels": _labels_of(connection, session.id)}
    before_it = insert(views).values(session_id=session.id, **before, **whence)
    connection.execute(before_it)
    _show(connection, session.id, row)
    return True


def restore(connection: Connection, session: Session) -> bool:
    """See a session as before its latest summary; tell whether it had one.

    Raises:
        Conflict: It has been compacted or deleted since it was read.
    """
    known = connection.execute(BY_ID, {"id": session.id}).mappings().first()
    if known is None or known["first_seq"] != session.first_seq:
        raise Conflict("the session was changed meanwhile; try again")
    view = connection.execute(_LATEST, {"id": session.id}).mappings().first()
    if view is None:
        return False
    before = {"first_seq": view["first_seq"], "summary": view["summary"]}
    _show(connection, session.id, {**before, "undone_at": known["next_seq"]})
    connection.execute(delete(views).where(views.c.id == view["id"]))
    return True


def pin(connection: Connection, session_id: str, seq: int) -> None:
    """Keep a message whole; a call goes with its results, and they with it.

    Raises:
        NotFound: There is no such message.
        InvalidInput: It is too long to be sent with each question.
        Conflict: Its call has no result yet, or too much is kept already.
    """
    for each in _whole(connection, session_id, seq):
        if len(each.parts.encode("utf-8", "surrogatepass")) > LARGEST_PIN:
            most = f"is longer than {LARGEST_PIN} bytes; have it summarised"
            raise InvalidInput("message", most)
        there = pins.c.session_id == session_id, pins.c.seq == each.seq
        if connection.execute(select(pins.c.seq).where(*there)).first() is None:
            row = {"session_id": session_id, "seq": each.seq}
            connection.execute(insert(pins).values(**row))
    kept = select(func.count()).where(pins.c.session_id == session_id)
    if connection.execute(kept).scalar_one() > MOST_PINS:
        raise Conflict(f"a session keeps {MOST_PINS} messages whole; unpin another")
    _show(connection, session_id, {})


def unpin(connection: Connection, session_id: str, seq: int) -> None:
    """Keep a message whole no longer, nor what went with it.

    Raises:
        NotFound: There is no such message.
    """
    for each in _whole(connection, session_id, seq):
        this = pins.c.session_id == session_id, pins.c.seq == each.seq
        connection.execute(delete(pins).where(*this))
    _show(connection, session_id, {})


def _whole(connection: Connection, session_id: str, seq: int) -> list[Row[Any]]:
    """Find a message with what it cannot be parted from.

    Raises:
        NotFound: There is none.
        Conflict: Its turn has not got so far.
    """
    found = None
    if 0 <= seq <= LARGEST_SEQ:
        found = connection.execute(_ONE, {"id": session_id, "seq": seq}).first()
    if found is None:
        raise NotFound("message", str(seq))
    answers = found.role == Role.TOOL.value
    calls = any(isinstance(part, ToolUse) for part in load_parts(found.parts))
    if not answers and not calls:
        return [found]
    other, role = (
        (messages.c.seq < seq, Role.ASSISTANT)
        if answers
        else (messages.c.seq > seq, Role.TOOL)
    )
    beside = select(messages).where(
        messages.c.session_id == session_id,
        messages.c.turn_id.is_not_distinct_from(found.turn_id),
        messages.c.role == role.value,
        messages.c.partial == 0,
        other,
    )
    nearest = messages.c.seq.desc() if answers else messages.c.seq
    partner = connection.execute(beside.order_by(nearest).limit(1)).first()
    if partner is None or found.partial:
        raise Conflict("the call has no result yet; pin it when the turn has ended")
    return [found, partner]


def _show(connection: Connection, session_id: str, row: Mapping[str, Any]) -> None:
    """Change a session's row, and count anew what is shown."""
    this = sessions.c.id == session_id
    if row:
        connection.execute(update(sessions).where(this).values(**row))
    now = connection.execute(BY_ID, {"id": session_id}).mappings().one()
    first = now["first_seq"]
    stands = and_(messages.c.seq >= first, place >= first)
    shown = connection.execute(
        select(func.count()).where(
            messages.c.session_id == session_id,
            or_(stands, IS_PINNED),
            messages.c.partial != SUPERSEDED,
            messages.c.role != Role.TOOL.value,
        )
    ).scalar_one()
    count = shown + (now["summary"] is not None)
    connection.execute(update(sessions).where(this).values(message_count=count))


def _labels_of(connection: Connection, session_id: str) -> str:
    """The labels of all that was ever said in a session, as they are written."""
    behind = select(messages.c.labels).where(
        messages.c.session_id == session_id, LABELLED
    )
    own = select(sessions.c.labels).where(sessions.c.id == session_id)
    found = connection.execute(behind.union(own)).scalars()
    return dump_labels(frozenset().union(*map(load_labels, found)))
