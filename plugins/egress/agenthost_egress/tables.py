"""The table of what agents have transferred within the last hour."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    or_,
)

metadata = MetaData()

transfers = Table(
    "egress_transfers",
    metadata,
    Column("node", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("at", REAL, primary_key=True),
    Column("size", Integer, nullable=False),
)
"""Bytes by the minute that began ``at``; each daemon counts its own."""


def keep(
    connection: Connection,
    node: str,
    since: float,
    agents: Collection[str],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Put the rows of some agents in the place of theirs, and forget what is old."""
    old = or_(transfers.c.agent_id.in_(agents), transfers.c.at <= since)
    connection.execute(delete(transfers).where(transfers.c.node == node, old))
    if rows:
        connection.execute(insert(transfers), [{"node": node, **row} for row in rows])
