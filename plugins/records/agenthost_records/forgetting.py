"""Turns of long ago: their rows go, what was said stays."""

from __future__ import annotations

from collections.abc import Sequence

from agenthost import CallState, TurnState
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from .rollup import metadata
from .tables import messages, sessions, tool_calls, turns

MESSAGES = 200
"""Messages in one look: as many turns may go in one write."""
CALLS = 250
"""Tool calls that go in one write."""

retention_marks = Table(
    "retention_marks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
)

TURNS = "turns_of_messages_up_to"
REACHED = select(retention_marks.c.value).where(retention_marks.c.name == TURNS)

# Turns are found by their messages, which stand in order of arrival: an index of turns
# by time would have to be written with every turn.
SPOKEN = (
    select(messages.c.id, messages.c.turn_id, messages.c.created_at)
    .where(messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(MESSAGES)
)

LEFT_CALLS = "turn:left:"
"""Keys that begin so keep what was said before calls that are the caller's."""

# Ephemeral sessions that nobody has spoken in for long, and nobody speaks in now.
LEFT = (
    select(sessions.c.id)
    .where(
        sessions.c.ephemeral == 1,
        or_(
            sessions.c.updated_at < bindparam("before"),
            and_(
                sessions.c.key.startswith(LEFT_CALLS),
                sessions.c.updated_at < bindparam("left_before"),
            ),
        ),
        ~exists(
            select(turns.c.id)
            .join(messages, messages.c.turn_id == turns.c.id)
            .where(
                messages.c.session_id == sessions.c.id,
                or_(
                    turns.c.state == TurnState.RUNNING.value,
                    turns.c.state == TurnState.WAITING.value,
                ),
            )
        ),
    )
    .limit(1)
)

# What may be asked for again stays: a turn that was started with a key, one that can
# be resumed, and one whose effects nobody knows.
FORGETTABLE = (
    turns.c.digest.is_(None),
    turns.c.state.in_(
        [
            state.value
            for state in (TurnState.DONE, TurnState.FAILED, TurnState.CANCELLED)
        ]
    ),
    ~exists(
        select(tool_calls.c.call_id).where(
            tool_calls.c.turn_id == turns.c.id,
            tool_calls.c.state == CallState.UNKNOWN.value,
        )
    ),
)


def forget_turns(connection: Connection, spoken: Sequence[str], reached: int) -> bool:
    """Delete turns with their tool calls, as far as one write may go.

    Args:
        connection: In a transaction.
        spoken: The turns of the messages that were looked at.
        reached: The last of these messages.

    Returns:
        Whether all are gone; otherwise it is to be called again.
    """
    going = select(turns.c.id).where(turns.c.id.in_(spoken), *FORGETTABLE)
    ids = connection.execute(going).scalars().all()
    call = (tool_calls.c.turn_id, tool_calls.c.call_id)
    some = select(*call).where(tool_calls.c.turn_id.in_(ids)).limit(CALLS)
    gone = connection.execute(delete(tool_calls).where(tuple_(*call).in_(some)))
    if gone.rowcount == CALLS:
        return False
    connection.execute(delete(turns).where(turns.c.id.in_(ids)))
    _mark(connection, reached)
    return True


def _mark(connection: Connection, reached: int) -> None:
    this = retention_marks.c.name == TURNS
    moved = update(retention_marks).where(this).values(value=reached)
    if not connection.execute(moved).rowcount:
        connection.execute(insert(retention_marks).values(name=TURNS, value=reached))
