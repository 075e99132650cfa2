"""The two tables of durable work, and what is read of them."""

from __future__ import annotations

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
