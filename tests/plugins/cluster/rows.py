"""A table for tests, and what is done with it."""

from __future__ import annotations

from functools import partial
from typing import Any

from agenthost import SchemaSpec
from agenthost_cluster.store import PostgresStore
from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    func,
    insert,
    select,
    update,
)

METADATA = MetaData()
THINGS = Table(
    "things",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, server_default=""),
    Column("number", Integer, nullable=False, server_default="0"),
    Column("moment", REAL),
    Column("content", LargeBinary),
)
SCHEMA = SchemaSpec("things", METADATA)
ALL = select(THINGS).order_by(THINGS.c.id)
SUM = select(func.sum(THINGS.c.number).label("sum"))


def put(connection: Connection, **values: Any) -> None:
    """Add a row."""
    connection.execute(insert(THINGS), values)


def count_up(connection: Connection) -> int:
    """Read a number and write the next one, as one who is alone may do."""
    number = int(connection.execute(select(THINGS.c.number)).scalar_one()) + 1
    connection.execute(update(THINGS).values(number=number))
    return number


async def add(store: PostgresStore, **values: Any) -> None:
    """Add a row and wait for the disk."""
    await store.write(partial(put, **values))
