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


SCHEMA = SchemaSpec("jobs", _metadata, (lease_runs,))
