"""The schema of the client. A start needs its name and steps, and no SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import SchemaSpec

if TYPE_CHECKING:
    from alembic.operations import Operations
    from sqlalchemy import MetaData


def _metadata() -> MetaData:
    from .tables import metadata

    return metadata


def keep_servers(op: Operations) -> None:
    """Have the servers that were added while the daemon ran."""
    from sqlalchemy import Column, Float, Text

    op.create_table(
        "mcp_servers",
        Column("name", Text, primary_key=True),
        Column("definition", Text, nullable=False),
        Column("added_at", Float, nullable=False),
        Column("owner", Text, nullable=False),
        Column("labels", Text, nullable=False),
    )


SCHEMA = SchemaSpec("mcp", _metadata, (keep_servers,))
