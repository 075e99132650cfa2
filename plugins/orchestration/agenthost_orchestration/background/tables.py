"""The table of occasions, and what is read of it."""

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
    func,
    or_,
    select,
)

from .errands import OccasionState

metadata = MetaData()

occasions = Table(
    "occasions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("source_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("state", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("turn_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("cost_micro_usd", Integer, nullable=False),
    Column("delivered", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
    # What was agreed when it began, the UTC day it counts to, and how many ended
    # before it, one after another, over a bill or a key.
    Column("terms", Text, nullable=False),
    Column("day", Integer),
    Column("strike", Integer, nullable=False),
    # Of one key there is one.
    Index("occasions_by_key", "source", "source_id", "key", unique=True),
    Index("occasions_by_time", "created_at", "id"),
    Index("occasions_by_source", "source", "source_id", "created_at"),
    Index("occasions_by_day", "source", "source_id", "day"),
)
COLUMN = occasions.c
UNENDED = COLUMN.ended_at.is_(None)
Index(
    "occasions_open",
    COLUMN.state,
    COLUMN.source,
    COLUMN.source_id,
    COLUMN.created_at,
    sqlite_where=UNENDED,
    postgresql_where=UNENDED,
)
Index("occasions_ended", COLUMN.ended_at)

OF_SOURCE = and_(
    COLUMN.source == bindparam("source"), COLUMN.source_id == bindparam("source_id")
)
ONE = select(occasions).where(COLUMN.id == bindparam("id"))
_turn = (
    func.row_number()
    .over(
        partition_by=(COLUMN.source, COLUMN.source_id),
        order_by=(COLUMN.created_at, COLUMN.id),
    )
    .label("turn")
)
_waiting_line = (
    select(COLUMN.id, COLUMN.source, COLUMN.source_id, COLUMN.created_at, _turn)
    .where(UNENDED, COLUMN.state == OccasionState.DUE.value)
    .subquery()
)
DUE = (
    select(_waiting_line)
    .order_by(_waiting_line.c.turn, _waiting_line.c.created_at, _waiting_line.c.id)
    .limit(bindparam("limit", type_=Integer))
)
"""The first of each source, then the second of each: none keeps others waiting."""
BEGUN = (
    select(occasions)
    .where(
        UNENDED, COLUMN.state != OccasionState.DUE.value, COLUMN.id > bindparam("after")
    )
    .order_by(COLUMN.id)
    .limit(bindparam("limit", type_=Integer))
)
OF_DAY = select(occasions).where(OF_SOURCE, COLUMN.day == bindparam("day"), UNENDED)
SPENT = select(func.coalesce(func.sum(COLUMN.cost_micro_usd), 0).label("spent")).where(
    OF_SOURCE, COLUMN.day == bindparam("day"), COLUMN.ended_at.is_not(None)
)
_counted = select(COLUMN.source, COLUMN.state, func.count().label("number")).group_by(
    COLUMN.source, COLUMN.state
)
COUNTED_OPEN = _counted.where(UNENDED)
COUNTED = _counted.where(COLUMN.ended_at > bindparam("since", type_=Float))
LISTED = (
    select(occasions)
    .where(
        *(
            or_(bindparam(name, type_=Text).is_(None), COLUMN[name] == bindparam(name))
            for name in ("source", "source_id", "state")
        ),
        or_(
            bindparam("before", type_=Float).is_(None),
            COLUMN.created_at < bindparam("before"),
            and_(
                COLUMN.created_at == bindparam("before"), COLUMN.id < bindparam("after")
            ),
        ),
    )
    .order_by(COLUMN.created_at.desc(), COLUMN.id.desc())
    .limit(bindparam("limit", type_=Integer))
)
OLD = (
    select(COLUMN.id)
    .where(COLUMN.ended_at < bindparam("before"))
    .limit(bindparam("limit", type_=Integer))
)
CROWDED = (
    select(COLUMN.source, COLUMN.source_id)
    .where(COLUMN.ended_at.is_not(None))
    .group_by(COLUMN.source, COLUMN.source_id)
    .having(func.count() > bindparam("most", type_=Integer))
)
_beyond = (
    select(COLUMN.id, COLUMN.cost_micro_usd, COLUMN.day)
    .where(OF_SOURCE, COLUMN.ended_at.is_not(None))
    .order_by(COLUMN.created_at.desc(), COLUMN.id.desc())
    .offset(bindparam("most", type_=Integer))
    .subquery()
)
BEYOND = (
    select(_beyond.c.id)
    .where(
        # What was spent today is summed from the rows of today.
        or_(
            _beyond.c.day.is_(None),
            _beyond.c.day != bindparam("day"),
            _beyond.c.cost_micro_usd == 0,
        )
    )
    .limit(bindparam("limit", type_=Integer))
)
