"""The table of approvals, and how a row reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agenthost import JsonObject, Row, SchemaSpec
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


class State(StrEnum):
    """Where an approval stands; only PENDING ones can be answered."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval as it stands; times are epoch seconds.

    ``shown`` is what a person saw, as JSON, and ``digest`` its SHA-256. ``asked_by``
    started the turn. ``carried`` says that its turn needs nothing of it any more.
    """

    id: str
    turn_id: str
    call_id: str
    agent_id: str
    session_id: str
    tool: str
    shown: JsonObject
    digest: str
    asked_by: str
    may_answer: str
    state: State
    created_at: float
    deadline: float
    answered_by: str | None
    answered_at: float | None
    reason: str | None
    values: JsonObject
    carried: bool


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
Index("approvals_open", approvals.c.carried, sqlite_where=OPEN)

SCHEMA = SchemaSpec("approvals", metadata)

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
UNSETTLED = (
    select(
        *(
            approvals.c[name]
            for name in ("id", "turn_id", "agent_id", "asked_by", "state", "deadline")
        )
    )
    .where(OPEN)
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


def approval_of(row: Row | Any) -> Approval:
    """Read an approval from its row."""
    return Approval(
        id=row["id"],
        turn_id=row["turn_id"],
        call_id=row["call_id"],
        agent_id=row["agent_id"],
        session_id=row["session_id"],
        tool=row["tool"],
        shown=json.loads(row["shown"]),
        digest=row["digest"],
        asked_by=row["asked_by"],
        may_answer=row["may_answer"],
        state=State(row["state"]),
        created_at=row["created_at"],
        deadline=row["deadline"],
        answered_by=row["answered_by"],
        answered_at=row["answered_at"],
        reason=row["reason"],
        values=json.loads(row["answers"]) if row["answers"] else {},
        carried=bool(row["carried"]),
    )
