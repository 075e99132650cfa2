"""Which daemon a turn belongs to: conditions of the writes, and who enters.

The conditions stand in statements that are written anyhow: they cost no query.
"""

from __future__ import annotations

from typing import Any

from agenthost import Superseded, TurnState, Writer
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    exists,
    literal,
    or_,
    select,
)

from .tables import nodes, turns

_NODE: BindParameter[str] = bindparam("by_node")
_EPOCH: BindParameter[int] = bindparam("by_epoch")

_STALE = select(nodes.c.node).where(nodes.c.node == _NODE, nodes.c.epoch > _EPOCH)
_ENDED = (TurnState.DONE.value, TurnState.CANCELLED.value)
"""How a turn ends for good."""

CURRENT = ~exists(_STALE)
"""The writer's node has not started again since."""
UNENDED = and_(*(turns.c.state != literal(state) for state in _ENDED))
"""The turn may still go on."""
OWN = and_(
    UNENDED,
    or_(turns.c.node == "", and_(turns.c.node == _NODE, turns.c.epoch <= _EPOCH)),
)
"""It does, and belongs to the writer, to what its node was before, or to nobody."""
HELD = exists(select(turns.c.id).where(turns.c.id == bindparam("turn"), OWN))
"""The same, in a write of another table."""

_TURN = select(turns.c.node, turns.c.state).where(turns.c.id == bindparam("turn"))


def by(writer: Writer) -> dict[str, Any]:
    """The parameters of the conditions."""
    return {"by_node": writer.node, "by_epoch": writer.epoch}


def left_by(table: Table, writer: Writer) -> ColumnElement[bool]:
    """Choose rows that the earlier epochs of a writer's node left, or nobody's."""
    earlier = and_(table.c.node == writer.node, table.c.epoch < writer.epoch)
    return or_(table.c.node == "", earlier)


def check_held(connection: Connection, writer: Writer, turn_id: str) -> None:
    """Say why a write found nothing of the writer's, unless it has been deleted.

    Raises:
        Superseded: The turn has ended or belongs to another, or the node has started
            again.
    """
    row = connection.execute(_TURN, {"turn": turn_id}).first()
    if row is not None and row.state in _ENDED:
        raise Superseded("the turn has ended; ask by its id what it came to")
    if row is not None and row.node not in {"", writer.node}:
        raise Superseded(
            f"the turn belongs to node {row.node!r}; ask there how it stands"
        )
    check_current(connection, writer)


def check_current(connection: Connection, writer: Writer) -> None:
    """See that the writer's node has not started again since.

    Raises:
        Superseded: It has, or it was taken for dead.
    """
    if connection.execute(_STALE, by(writer)).first() is not None:
        raise Superseded(
            f"another process has started as node {writer.node!r} since, or this one "
            "stood still for too long; ask again, and give each daemon of a database "
            "a node of its own"
        )
