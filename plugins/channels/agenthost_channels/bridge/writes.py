"""Writes of the inbox and the outbox: functions of a connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)

from .tables import (
    conversations,
    cursors,
    drafts,
    files_in,
    files_out,
    inbox,
    outbox,
    pairings,
    switched_off,
)

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
    for given in messages:
        row = dict(given)
        files = row.pop("files", ())
        known = select(inbox.c.key).where(inbox.c.key == row["key"])
        if connection.execute(known).first() is None:
            connection.execute(insert(inbox).values(**row, seq=number + new))
            if files:
                connection.execute(insert(files_in), files)
            new += 1
    if cursor is not None:
        _move(connection, channel, account, cursor)
    return new


def enter(
    connection: Connection, row: Columns, idle: float, most: int
) -> tuple[str, int]:
    """Count a message of a conversation; tell its agent and how often it began anew.

    Args:
        connection: Of the write.
        row: The inbox's row; asked again for it, the answer is the same.
        idle: Seconds of silence after which it begins anew, 0 for none.
        most: Messages after which it does, 0 for none.
    """
    found = connection.execute(select(conversations).where(*_place(row))).first()
    now = {"last_at": row["received_at"], "last_key": row["key"]}
    if found is None:
        _begin(connection, row, {**now, "agent": "", "epoch": 0, "said": 1})
        return "", 0
    if found.last_key == row["key"]:
        return found.agent, found.epoch
    silent = idle and row["received_at"] - found.last_at > idle
    anew = bool(silent or (most and found.said >= most))
    epoch, said = found.epoch + anew, 1 if anew else found.said + 1
    values = {**now, "epoch": epoch, "said": said}
    connection.execute(update(conversations).where(*_place(row)).values(values))
    return found.agent, epoch


def change(
    connection: Connection,
    row: Columns,
    agent: str | None = None,
    *,
    anew: bool = False,
) -> None:
    """Have another agent answer in a conversation, or begin it anew."""
    enter(connection, row, 0, 0)
    values: dict[str, Any] = {} if agent is None else {"agent": agent}
    if anew:
        values |= {"epoch": conversations.c.epoch + 1, "said": 0}
    connection.execute(update(conversations).where(*_place(row)).values(values))


def ask_in(connection: Connection, pairing: Columns, says: Columns, most: int) -> bool:
    """Give a stranger a code, unless there is one, or too many of others."""
    channel, now = pairings.c.channel == pairing["channel"], pairing["asked_at"]
    connection.execute(delete(pairings).where(channel, pairings.c.expires_at <= now))
    pending = connection.execute(select(pairings.c.sender).where(channel)).all()
    if len(pending) >= most or (pairing["sender"],) in pending:
        return False
    connection.execute(insert(pairings).values(pairing))
    connection.execute(insert(outbox).values(**says, seq=_next(connection, outbox)))
    return True


def say(connection: Connection, says: Sequence[Columns]) -> None:
    """Put something into the outbox that answers no message of the inbox."""
    number = _next(connection, outbox)
    for offset, given in enumerate(says):
        row = dict(given)
        file = row.pop("file", None)
        connection.execute(insert(outbox).values(**row, seq=number + offset))
        if file is not None:
            connection.execute(insert(files_out).values(id=row["id"], **file))


def say_once(connection: Connection, says: Sequence[Columns]) -> None:
    """Put something into the outbox that is not there yet."""
    known = select(outbox.c.id).where(outbox.c.id.in_([row["id"] for row in says]))
    there = set(connection.execute(known).scalars())
    say(connection, [row for row in says if row["id"] not in there])


def close_pairing(connection: Connection, channel: str, code: str) -> int:
    """Take a code away; tell how many there were."""
    own = (pairings.c.channel == channel, pairings.c.code == code)
    return connection.execute(delete(pairings).where(*own)).rowcount


def answer(
    connection: Connection, key: str, says: Sequence[Columns], *, had_files: bool
) -> bool:
    """Put what a message is answered with into the outbox, once."""
    settled = (
        update(inbox)
        .where(inbox.c.key == key, inbox.c.state == "new")
        .values(state="done", text="")
    )
    if not connection.execute(settled).rowcount:
        return False
    if had_files:
        connection.execute(delete(files_in).where(files_in.c.key == key))
    if not says:
        drop_draft(connection, f"{key[:28]}-0")
    say(connection, says)
    return True


def switch(connection: Connection, row: Columns, *, on: bool) -> None:
    """Have a channel be off, or on again."""
    own = switched_off.c.channel == row["channel"]
    connection.execute(delete(switched_off).where(own))
    if not on:
        connection.execute(insert(switched_off).values(row))


def settle(connection: Connection, outbox_id: str, values: Columns) -> None:
    """Write what became of a message to send."""
    own = outbox.c.id == outbox_id
    connection.execute(update(outbox).where(own).values(values))


def tell_lost(connection: Connection, ids: Sequence[str]) -> None:
    """Note that agents know what did not arrive."""
    connection.execute(update(outbox).where(outbox.c.id.in_(ids)).values(due=0.0))


def keep_draft(connection: Connection, row: Columns) -> None:
    """Keep which message shows an answer."""
    connection.execute(insert(drafts).values(row))


def drop_draft(connection: Connection, outbox_id: str) -> None:
    """Have a message be as it is from now on."""
    connection.execute(delete(drafts).where(drafts.c.id == outbox_id))


def drop_file(connection: Connection, outbox_id: str) -> None:
    """Forget the file of a message that is not sent again."""
    connection.execute(delete(files_out).where(files_out.c.id == outbox_id))


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


def _place(row: Columns) -> list[ColumnElement[bool]]:
    names = ("channel", "account", "peer", "thread")
    return [conversations.c[name] == row[name] for name in names]


def _begin(connection: Connection, row: Columns, values: Columns) -> None:
    names = ("channel", "account", "peer", "thread", "owner", "labels")
    of_row = {name: row[name] for name in names}
    connection.execute(insert(conversations).values(**of_row, **values))


def _next(connection: Connection, table: Table) -> int:
    number = connection.execute(select(func.max(table.c.seq))).scalar()
    return (number or 0) + 1


def _move(connection: Connection, channel: str, account: str, cursor: str) -> None:
    own = (cursors.c.channel == channel, cursors.c.account == account)
    moved = update(cursors).where(*own).values(cursor=cursor)
    if not connection.execute(moved).rowcount:
        row = {"channel": channel, "account": account, "cursor": cursor}
        connection.execute(insert(cursors).values(row))
