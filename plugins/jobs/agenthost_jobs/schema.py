"""The schema of jobs. A start needs its name and steps, and no SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import SchemaSpec

if TYPE_CHECKING:
    from alembic.operations import Operations
    from sqlalchemy import MetaData


def _metadata() -> MetaData:
    from .tables import METADATA

    return METADATA


def lease_runs(op: Operations) -> None:
    """Let a run say until when it counts as alive."""
    from sqlalchemy import Column, Float

    op.add_column("job", Column("until", Float))


def own_jobs(op: Operations) -> None:
    """Let a job say who caused it, and with which labels; who runs it is its holder."""
    from sqlalchemy import Column, Text

    op.alter_column("job", "owner", new_column_name="holder")
    for name, empty in (("owner", ""), ("labels", "[]")):
        op.add_column("job", Column(name, Text, nullable=False, server_default=empty))


SCHEMA = SchemaSpec("jobs", _metadata, (lease_runs, own_jobs))
