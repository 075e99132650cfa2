"""Usage of long ago: one row a day, agent and model, so that no total ever falls."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    select,
    update,
)

from .tables import usage

DAY = 86_400
BATCH = 500
"""Rows that one write takes out of the ledger."""

metadata = MetaData()

usage_days = Table(
    "usage_days",
    metadata,
    Column("day", Integer, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("provider", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("first_at", REAL, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("cache_write_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("cost_micro_usd", Integer, nullable=False),
)

_KEY = ("day", "agent_id", "provider", "model")
_SUMS = tuple(c.name for c in usage_days.columns if c.name not in {*_KEY, "first_at"})

_OLDEST = (
    select(usage.c.id)
    .where(usage.c.at < bindparam("before"))
    .order_by(usage.c.at, usage.c.id)
    .limit(BATCH)
)
_DAY = cast(usage.c.at / DAY, Integer).label("day")
_BY_DAY = (
    select(
        _DAY,
        usage.c.agent_id,
        usage.c.provider,
        usage.c.model,
        func.min(usage.c.at).label("first_at"),
        func.count().label("requests"),
        *(func.sum(usage.c[name]).label(name) for name in _SUMS[1:]),
    )
    .where(usage.c.id.in_(bindparam("ids", expanding=True)))
    .group_by(_DAY, usage.c.agent_id, usage.c.provider, usage.c.model)
)


def roll_up(connection: Connection, before: float) -> int:
    """Move the oldest rows of the ledger into the sums of their days.

    Args:
        connection: In a transaction: a row is counted once, here or there.
        before: Rows from this moment on stay.

    Returns:
        How many rows were moved, at most 500.
    """
    ids = connection.execute(_OLDEST, {"before": before}).scalars().all()
    for row in connection.execute(_BY_DAY, {"ids": ids}).mappings().all():
        _add(connection, dict(row))
    connection.execute(delete(usage).where(usage.c.id.in_(ids)))
    return len(ids)


def _add(connection: Connection, row: dict[str, Any]) -> None:
    this = and_(*(usage_days.c[name] == row[name] for name in _KEY))
    first = usage_days.c.first_at
    grown: dict[str, Any] = {
        "first_at": case((first < row["first_at"], first), else_=row["first_at"]),
        **{name: usage_days.c[name] + row[name] for name in _SUMS},
    }
    if not connection.execute(update(usage_days).where(this).values(grown)).rowcount:
        connection.execute(insert(usage_days).values(row))
