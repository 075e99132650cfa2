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
    and_,
    bindparam,
    case,
    func,
    literal_column,
    not_,
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
    Column("purse", Text, nullable=False, server_default=""),
    Column("behind", Text, nullable=False, server_default=""),
    Column("depth", Integer, nullable=False, server_default="0"),
    # For what a yes holds beyond its call: "", session or pattern.
    Column("remember", Text, nullable=False, server_default=""),
    Column("pattern", Text, nullable=False, server_default=""),
    # One call, shown as it was, is asked about once.
    Index("approvals_by_call", "turn_id", "call_id", "digest", unique=True),
    Index("approvals_by_purse", "purse", "created_at"),
    Index("approvals_behind", "behind"),
    Index("approvals_remembered", "remember", "agent_id", "tool"),
)
OPEN = approvals.c.carried == literal_column("0")
"""The value is written out: SQLite uses no partial index for a parameter."""
Index("approvals_open", approvals.c.carried, sqlite_where=OPEN, postgresql_where=OPEN)

PENDING = approvals.c.state == State.PENDING.value
ASKED = approvals.c.behind == ""
"""A question, not a turn that waits behind one."""
ABOUT_MONEY = and_(approvals.c.purse != "", ASKED)
ONE = select(approvals).where(approvals.c.id == bindparam("id"), ASKED)
OF_CALL = (
    select(approvals)
    .where(
        approvals.c.turn_id == bindparam("turn"),
        approvals.c.call_id == bindparam("call"),
        approvals.c.purse == "",
    )
    .order_by(approvals.c.created_at, approvals.c.id)
)
WAITED_FOR = (
    select(approvals)
    .where(approvals.c.turn_id == bindparam("turn"), PENDING, not_(ABOUT_MONEY))
    .order_by(approvals.c.created_at, approvals.c.id)
)
REMEMBERED = (
    select(approvals)
    .where(
        approvals.c.remember.in_(("session", "pattern")),
        approvals.c.agent_id == bindparam("agent"),
        approvals.c.tool == bindparam("tool"),
        approvals.c.asked_by == bindparam("asked_by"),
        approvals.c.may_answer == bindparam("may_answer"),
        approvals.c.state == State.APPROVED.value,
    )
    .order_by(approvals.c.answered_at.desc(), approvals.c.id)
)
"""What may answer for people: of this agent and tool, caused by the same principal."""
OF_PURSE = (
    select(approvals)
    .where(
        ASKED,
        or_(
            approvals.c.purse == bindparam("purse"),
            # Its parts: what begins with the purse and a slash, in any collation.
            func.substr(
                approvals.c.purse, 1, func.length(bindparam("purse", type_=Text)) + 1
            )
            == bindparam("purse", type_=Text).concat("/"),
        ),
    )
    .order_by(approvals.c.created_at, approvals.c.id)
)
_behind = approvals.alias("behind")
_waited_for = select(_behind.c.behind).where(_behind.c.turn_id == bindparam("turn_id"))
LISTED = (
    select(approvals)
    .where(
        ASKED,
        *(
            or_(
                bindparam(name, type_=Text).is_(None),
                approvals.c[name] == bindparam(name),
            )
            for name in ("state", "agent_id")
        ),
        or_(
            bindparam("turn_id", type_=Text).is_(None),
            approvals.c.turn_id == bindparam("turn_id"),
            approvals.c.id.in_(_waited_for),
        ),
    )
    .order_by(
        case((PENDING, 0), else_=1), approvals.c.created_at.desc(), approvals.c.id
    )
    .limit(bindparam("limit", type_=Integer))
)
WAITING_OF_AGENT = select(func.count()).where(
    PENDING, ASKED, approvals.c.agent_id == bindparam("agent")
)
