"""The table of recorded decisions: a row for each different one, with its count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

MOST = 10_000
"""Rows of one owner."""

metadata = MetaData()

decisions = Table(
    "desktop_shell_decisions",
    metadata,
    # A digest of what follows up to the capability, which may be long.
    Column("id", Text, primary_key=True),
    Column("window", Text, nullable=False),
    Column("webview", Text),
    Column("origin", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("program", Text, nullable=False),
    Column("allowed", Integer, nullable=False),
    Column("permission", Text),
    Column("capability", Text),
    Column("count", Integer, nullable=False),
    Column("first_at", REAL, nullable=False),
    Column("last_at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Index("desktop_shell_decisions_by_owner", "owner", "last_at"),
)
LISTED = (
    select(decisions)
    .where(
        or_(decisions.c.owner == bindparam("owner"), bindparam("owner") == ""),
        decisions.c.last_at >= bindparam("since"),
    )
    .order_by(decisions.c.last_at.desc(), decisions.c.id)
    .limit(bindparam("most"))
)
_KNOWN = select(decisions.c.id).where(
    decisions.c.id.in_(bindparam("keys", expanding=True))
)
_AGAIN = (
    update(decisions)
    .where(decisions.c.id == bindparam("key"))
    .values(count=decisions.c.count + bindparam("more"), last_at=bindparam("at"))
)
_NUMBER = select(func.count()).where(decisions.c.owner == bindparam("owner"))
# What a permission lets through there are only so many of: a page that asks for what it
# makes up pushes out its own like.
_REAL = and_(decisions.c.allowed == 1, decisions.c.permission.is_not(None))
_OLDEST = (
    select(decisions.c.id)
    .where(decisions.c.owner == bindparam("owner"))
    .order_by(_REAL, decisions.c.last_at, decisions.c.id)
    .limit(bindparam("excess"))
)


class Decided(NamedTuple):
    """A decision that was made, in the words of its row."""

    owner: str
    window: str
    webview: str | None
    origin: str
    platform: str
    command: str
    program: str
    allowed: bool
    permission: str | None
    capability: str | None

    @property
    def key(self) -> str:
        """What tells it from others."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()


def keep(connection: Connection, counts: Mapping[Decided, int], at: float) -> None:
    """Count decisions, and forget the oldest of an owner who has too many."""
    rows = {decided.key: decided for decided in counts}
    found = connection.execute(_KNOWN, {"keys": list(rows)}).scalars()
    again = set(found)
    if again:
        more = [{"key": k, "more": counts[rows[k]], "at": at} for k in sorted(again)]
        connection.execute(_AGAIN, more)
    new = [_row(d, counts[d], at) for key, d in rows.items() if key not in again]
    if new:
        connection.execute(insert(decisions), new)
    for owner in sorted({row["owner"] for row in new}):
        _forget(connection, owner)


def _row(decided: Decided, count: int, at: float) -> dict[str, Any]:
    times = {"count": count, "first_at": at, "last_at": at}
    allowed = {"id": decided.key, "allowed": int(decided.allowed), "labels": "[]"}
    return {**decided._asdict(), **times, **allowed}


def _forget(connection: Connection, owner: str) -> None:
    """Forget a tenth at once, so that they are not sorted for each that comes."""
    excess = connection.execute(_NUMBER, {"owner": owner}).scalar_one() - MOST
    if excess > 0:
        oldest = {"owner": owner, "excess": excess + MOST // 10}
        forgotten = connection.execute(_OLDEST, oldest).scalars().all()
        connection.execute(delete(decisions).where(decisions.c.id.in_(forgotten)))
