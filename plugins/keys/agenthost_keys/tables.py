"""The table of named keys, and its writes."""

from __future__ import annotations

import json
from dataclasses import replace

from agenthost import Conflict, Keep, NotFound
from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from .rows import NEWEST, Key

MOST = 1000
"""Keys that hold at once; all of them are known in memory."""
KEEP_REVOKED = 90 * 86_400.0

metadata = MetaData()

keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("expires_at", REAL),
    Column("units_per_minute", Integer),
    Column("created_at", REAL, nullable=False),
    Column("last_used_at", REAL),
    Column("revoked_at", REAL),
    Column("revision", Integer, nullable=False, index=True),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
_UNREVOKED = text("revoked_at IS NULL")
Index(
    "keys_by_name",
    keys.c.name,
    unique=True,
    sqlite_where=_UNREVOKED,
    postgresql_where=_UNREVOKED,
)

ALL = select(keys).order_by(keys.c.created_at, keys.c.id)
_USED = (
    update(keys)
    .where(keys.c.id == bindparam("key"))
    .values(last_used_at=bindparam("at"))
)


def add(connection: Connection, key: Key, keep: Keep | None = None) -> None:
    """Keep a key, and forget those that were revoked long ago.

    Raises:
        Conflict: The name is taken, or there are too many.
    """
    living = keys.c.revoked_at.is_(None)
    # People take two names that differ in case alone for one.
    same = select(keys.c.id).where(living, func.lower(keys.c.name) == key.name.lower())
    if connection.execute(same).first():
        raise Conflict(f"a key named {key.name!r} exists already; revoke it first")
    count = select(func.count()).select_from(keys).where(living)
    if connection.execute(count).scalar_one() >= MOST:
        raise Conflict(f"there are {MOST} keys; revoke one that is not needed")
    row = _row(replace(key, revision=_next(connection)))
    connection.execute(insert(keys).values(**row))
    long_ago = keys.c.revoked_at < key.created_at - KEEP_REVOKED
    connection.execute(delete(keys).where(long_ago))
    if keep is not None:
        keep(connection)


def revoke(
    connection: Connection, key_id: str, now: float, keep: Keep | None = None
) -> None:
    """Let a key hold no more.

    Raises:
        NotFound: There is none, or it was revoked before.
    """
    revoked = connection.execute(
        update(keys)
        .where(keys.c.id == key_id, keys.c.revoked_at.is_(None))
        .values(revoked_at=now, revision=_next(connection))
    )
    if not revoked.rowcount:
        raise NotFound("key", key_id)
    if keep is not None:
        keep(connection)


def mark_used(connection: Connection, key_id: str, now: float) -> None:
    """Remember when a key was used."""
    connection.execute(_USED, {"key": key_id, "at": now})


def _row(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "hash": key.hash,
        "scopes": json.dumps(key.scopes),
        "person": key.person,
        "expires_at": key.expires_at,
        "units_per_minute": key.units_per_minute,
        "created_at": key.created_at,
        "revision": key.revision,
        "owner": key.owner,
        "labels": "[]",
    }


def _next(connection: Connection) -> int:
    return int(connection.execute(text(NEWEST)).scalar_one()) + 1
