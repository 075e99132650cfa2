"""The schema of approvals. A start needs its name and steps, and no SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import SchemaSpec

if TYPE_CHECKING:
    from alembic.operations import Operations
    from sqlalchemy import MetaData


def _metadata() -> MetaData:
    from .tables import metadata

    return metadata


def ask_about_money(op: Operations) -> None:
    """Let a question be about a purse, turns wait behind it, and keep their depth."""
    from sqlalchemy import Column, Integer, Text

    for name in ("purse", "behind"):
        column = Column(name, Text, nullable=False, server_default="")
        op.add_column("approvals", column)
    depth = Column("depth", Integer, nullable=False, server_default="0")
    op.add_column("approvals", depth)
    op.create_index("approvals_by_purse", "approvals", ["purse", "created_at"])
    op.create_index("approvals_behind", "approvals", ["behind"])


def remember_answers(op: Operations) -> None:
    """Let a yes hold for a session, or for what a pattern says."""
    from sqlalchemy import Column, Text

    for name in ("remember", "pattern"):
        column = Column(name, Text, nullable=False, server_default="")
        op.add_column("approvals", column)
    columns = ["remember", "agent_id", "tool"]
    op.create_index("approvals_remembered", "approvals", columns)


SCHEMA = SchemaSpec("approvals", _metadata, (ask_about_money, remember_answers))
