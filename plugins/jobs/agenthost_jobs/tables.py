"""The two tables of durable work, and how a row reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agenthost import InvalidInput, Job, JobState, Json, Row, SchemaSpec
from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    or_,
    select,
)

if TYPE_CHECKING:
    from alembic.operations import Operations

METADATA = MetaData()

JOB = Table(
    "job",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("due", Float, nullable=False),
    Column("holder", Text),
    Column("epoch", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("result", Text),
    Column("error", Text),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("until", Float),
    Column("owner", Text, nullable=False, server_default=""),
    Column("labels", Text, nullable=False, server_default="[]"),
    Index("job_state_due", "state", "due"),
)

STEP = Table(
    "step",
    METADATA,
    Column("job", Text, ForeignKey(JOB.c.id, ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("output", Text, nullable=False),
)


def lease_runs(op: Operations) -> None:
    """Let a run say until when it counts as alive."""
    op.add_column("job", Column("until", Float))


def own_jobs(op: Operations) -> None:
    """Let a job say who caused it, and with which labels; who runs it is its holder."""
    op.alter_column("job", "owner", new_column_name="holder")
    for name, empty in (("owner", ""), ("labels", "[]")):
        op.add_column("job", Column(name, Text, nullable=False, server_default=empty))


SCHEMA = SchemaSpec("jobs", METADATA, (lease_runs, own_jobs))

ONE = select(JOB).where(JOB.c.id == bindparam("id"))
LISTED = (
    select(JOB)
    .where(
        or_(bindparam("kind", type_=Text).is_(None), JOB.c.kind == bindparam("kind")),
        or_(
            bindparam("state", type_=Text).is_(None), JOB.c.state == bindparam("state")
        ),
    )
    .order_by(JOB.c.created_at.desc(), JOB.c.id)
    .limit(bindparam("limit", type_=Integer))
)


def job_of(row: Row | Any) -> Job:
    """Read a job from its row."""
    return Job(
        id=row["id"],
        key=row["key"],
        kind=row["kind"],
        payload=json.loads(row["payload"]),
        state=JobState(row["state"]),
        due=row["due"],
        epoch=row["epoch"],
        attempts=row["attempts"],
        result=None if row["result"] is None else json.loads(row["result"]),
        error=row["error"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        holder=row["holder"],
        until=row["until"],
        owner=row["owner"],
        labels=frozenset(json.loads(row["labels"])),
    )


def written(field: str, value: Json) -> str:
    """Write a JSON value as text.

    Raises:
        InvalidInput: It is not JSON.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field, f"is not JSON: {error}") from None
