"""Writes of the inbox and the outbox: functions of a connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, update

from .tables import cursors, inbox, outbox

KEPT_SECONDS = 30 * 86_400.0
"""How long a message is known by its id, and what became of an answer is shown."""

Columns = Mapping[str, Any]


def take(
    connection: Connection,
    messages: Sequence[Columns],
    channel: str,
    account: str,
    cursor: str | None,
) -> int:
    """Keep what is not known yet, and the cursor; tell how many were new."""
    new = 0
    number = _next(connection, inbox)
    for row in messages:
        known = select(inbox.c.key).where(inbox.c.key == row["key"])
        if connection.execute(known).first() is None:
            connection.execute(insert(inbox).values(**row, seq=number + new))
            new += 1
    if cursor is not None:
        _move(connection, channel, account, cursor)
    return new


def answer(connection: Connection, key: str, says: Sequence[Columns]) -> bool:
    """Put what a message is answered with into the outbox, once."""
    settled = (
        update(inbox)
        .where(inbox.c.key == key, inbox.c.state == "new")
        .values(state="done", text="")
    )
    if not connection.execute(settled).rowcount:
        return False
    number = _next(connection, outbox)
    for offset, row in enumerate(says):
        connection.execute(insert(outbox).values(**row, seq=number + offset))
    return True


def settle(connection: Connection, outbox_id: str, values: Columns) -> None:
    """Write what became of a message to send."""
    own = outbox.c.id == outbox_id
    connection.execute(update(outbox).where(own).values(values))


def forget(connection: Connection, now: float) -> None:
    """Forget what was over long ago."""
    before = now - KEPT_SECONDS
    over = ("delivered", "failed", "unknown")
    connection.execute(
        delete(inbox).where(inbox.c.state == "done", inbox.c.received_at < before)
    )
    connection.execute(
        delete(outbox).where(outbox.c.state.in_(over), outbox.c.created_at < before)
    )


def _next(connection: Connection, table: Table) -> int:
    number = connection.execute(select(func.max(table.c.seq))).scalar()
    return (number or 0) + 1


def _move(connection: Connection, channel: str, account: str, cursor: str) -> None:
    own = (cursors.c.channel == channel, cursors.c.account == account)
    moved = update(cursors).where(*own).values(cursor=cursor)
    if not connection.execute(moved).rowcount:
        row = {"channel": channel, "account": account, "cursor": cursor}
        connection.execute(insert(cursors).values(row))
