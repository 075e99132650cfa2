"""The tables of pins, and of servers that were added while the daemon ran."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, MetaData, Table, Text

metadata = MetaData()

mcp_pins = Table(
    "mcp_pins",
    metadata,
    Column("server", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("pinned_at", Float, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
Index("mcp_pins_by_name", mcp_pins.c.name)

mcp_servers = Table(
    "mcp_servers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("definition", Text, nullable=False),
    Column("added_at", Float, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
