"""The table of approvals, and what is read of it."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
)

from .rows import State

metadata = MetaData()

approvals = Table(
    "approvals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("turn_id", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("shown", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("may_answer", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("deadline", Float, nullable=False),
    Column("answered_by", Text),
    Column("answered_at", Float),
    Column("reason", Text),
    Column("answers", Text),
    Column("carried", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
    # One call, shown as it was, is asked about once.
    Index("approvals_by_call", "turn_id", "call_id", "digest", unique=True),
)
OPEN = approvals.c.carried == literal_column("0")
"""The value is written out: SQLite uses no partial index for a parameter."""
Index("approvals_open", approvals.c.carried, sqlite_where=OPEN, postgresql_where=OPEN)

PENDING = approvals.c.state == State.PENDING.value
ONE = select(approvals).where(approvals.c.id == bindparam("id"))
OF_CALL = (
    select(approvals)
    .where(
        approvals.c.turn_id == bindparam("turn"),
        approvals.c.call_id == bindparam("call"),
    )
    .order_by(approvals.c.created_at, approvals.c.id)
)
WAITED_FOR = (
    select(approvals)
    .where(approvals.c.turn_id == bindparam("turn"), PENDING)
    .order_by(approvals.c.created_at, approvals.c.id)
)
LISTED = (
    select(approvals)
    .where(
        *(
            or_(
                bindparam(name, type_=Text).is_(None),
                approvals.c[name] == bindparam(name),
            )
            for name in ("state", "agent_id", "turn_id")
        )
    )
    .order_by(
        case((PENDING, 0), else_=1), approvals.c.created_at.desc(), approvals.c.id
    )
    .limit(bindparam("limit", type_=Integer))
)
WAITING_OF_AGENT = select(func.count()).where(
    PENDING, approvals.c.agent_id == bindparam("agent")
)
