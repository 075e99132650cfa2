"""One small table that the tests write to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agenthost import SchemaSpec
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    insert,
    select,
)

METADATA = MetaData()
ITEMS = Table(
    "items",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)
SCHEMA = SchemaSpec("items", METADATA)
INSERT = insert(ITEMS)
ALL = select(ITEMS.c.id, ITEMS.c.name).order_by(ITEMS.c.id)
BY_NAME = select(ITEMS.c.id, ITEMS.c.name).where(ITEMS.c.name == bindparam("name"))


def put(connection: Connection, name: str) -> None:
    connection.execute(INSERT, {"name": name})


def adding(name: str) -> Callable[[Connection], None]:
    return partial(put, name=name)


async def names(store: SqliteStore) -> list[str]:
    return [row["name"] for row in await store.read(ALL)]
