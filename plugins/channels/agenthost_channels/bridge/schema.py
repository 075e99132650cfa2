"""The schema of channels. A start needs its name and steps, and no SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import SchemaSpec

if TYPE_CHECKING:
    from alembic.operations import Operations
    from sqlalchemy import MetaData


def _metadata() -> MetaData:
    from .tables import metadata

    return metadata


def carry_files(op: Operations) -> None:
    """Have files and drafts, what is switched off, and the heads of conversations."""
    from sqlalchemy import REAL, Column, Integer, LargeBinary, Text

    def texts(*names: str) -> list[Column[str]]:
        return [Column(name, Text, nullable=False) for name in names]

    place = ["channel", "state", "account", "peer", "thread", "seq"]
    for box in ("channel_inbox", "channel_outbox"):
        op.drop_index(f"{box}_open", box)
        op.create_index(f"{box}_open", box, place)
    op.create_table(
        "channel_files_in",
        Column("key", Text, primary_key=True),
        Column("number", Integer, primary_key=True),
        *texts("name", "media_type", "reference"),
        Column("size", Integer, nullable=False),
        *texts("owner", "labels"),
    )
    op.create_table(
        "channel_files_out",
        Column("id", Text, primary_key=True),
        *texts("name", "media_type", "owner", "labels"),
        Column("data", LargeBinary, nullable=False),
    )
    op.create_table(
        "channel_drafts",
        Column("id", Text, primary_key=True),
        *texts("message_id", "owner", "labels"),
    )
    op.create_table(
        "channel_switched_off",
        Column("channel", Text, primary_key=True),
        Column("at", REAL, nullable=False),
        *texts("owner", "labels"),
    )


SCHEMA = SchemaSpec("channels", _metadata, (carry_files,))
