"""What is written of responses: functions of a connection, each in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenthost import JsonObject, Unavailable
from sqlalchemy import Connection, and_, delete, insert, select, update

from .tables import COLUMN, OPEN, OWN, WAITING, responses

MOST_WAITING = 1_000
"""Responses in the background that one owner may have open."""
RETRY_IN = 30


def add(connection: Connection, row: JsonObject) -> None:
    """Keep a response that is to be done in the background, unless it is there.

    Raises:
        Unavailable: Its owner has too many that wait.
    """
    known = select(COLUMN.id).where(COLUMN.id == row["id"])
    if connection.execute(known).first() is not None:
        return
    owner = {"owner": row["owner"]}
    if connection.execute(WAITING, owner).scalar_one() >= MOST_WAITING:
        full = Unavailable(f"{MOST_WAITING} responses wait; try again soon")
        full.retry_in = RETRY_IN
        raise full
    connection.execute(insert(responses).values(**row))


def put(connection: Connection, row: JsonObject) -> None:
    """Keep a response that nobody was told of before its end."""
    row = {**row, "size": row["size"] + _size(row)}
    known = update(responses).where(COLUMN.id == row["id"]).values(**row)
    if not connection.execute(known).rowcount:
        connection.execute(insert(responses).values(**row))


def end(connection: Connection, known: str, ending: JsonObject) -> bool:
    """Write what came of one that is open; tell whether it was."""
    this = and_(COLUMN.id == known, OPEN)
    size = COLUMN.size + _size(ending)
    done = update(responses).where(this).values(**ending, size=size)
    return bool(connection.execute(done).rowcount)


def _size(ending: JsonObject) -> int:
    return len(ending["ending"]) + len(ending["said"])


def begin(connection: Connection, known: str) -> None:
    """Write that it is being done."""
    this = and_(COLUMN.id == known, OPEN)
    connection.execute(update(responses).where(this).values(status="in_progress"))


def remove(connection: Connection, known: str, owner: str) -> bool:
    """Delete one of an owner's; tell whether there was one."""
    gone = delete(responses).where(COLUMN.id == known, OWN)
    return bool(connection.execute(gone, {"owner": owner}).rowcount)


def forget(connection: Connection, ids: Sequence[Any]) -> None:
    """Delete what is old."""
    connection.execute(delete(responses).where(COLUMN.id.in_(ids)))
