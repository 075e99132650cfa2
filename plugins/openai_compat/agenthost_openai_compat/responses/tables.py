"""The table of responses, and what is read of it.

Whoever asks reads its own rows: what a client can name is found with its owner alone.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    func,
    literal,
    literal_column,
    select,
)

metadata = MetaData()

responses = Table(
    "openai_responses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("previous", Text, nullable=False, index=True),
    Column("status", Text, nullable=False),
    Column("background", Integer, nullable=False),
    Column("created_at", Float, nullable=False, index=True),
    Column("ended_at", Float),
    Column("digest", Text),
    Column("size", Integer, nullable=False),
    Column("asked", Text, nullable=False),
    Column("items", Text, nullable=False),
    Column("remote", Text, nullable=False),
    # What came of it: as it is shown, and all that was said and done.
    Column("ending", Text),
    Column("said", Text),
)
COLUMN = responses.c
OPEN = COLUMN.ended_at.is_(None)
Index(
    "openai_responses_open",
    COLUMN.owner,
    COLUMN.created_at,
    sqlite_where=OPEN,
    postgresql_where=OPEN,
)

OWN = COLUMN.owner == bindparam("owner")
ONE = select(responses).where(COLUMN.id == bindparam("id"), OWN)
WAITING = select(func.count().label("waiting")).where(OWN, OPEN)


def _chain() -> Select[tuple[object, ...]]:
    """Read a response and those before it, the oldest first.

    As it goes back it has only what it needs for that: rows may be large.
    """
    here = (COLUMN.id, COLUMN.previous, COLUMN.size)
    hop, total = literal(0).label("hop"), COLUMN.size.label("total")
    line = (
        select(*here, hop, total)
        .where(COLUMN.id == bindparam("id"), OWN)
        .cte("line", recursive=True)
    )
    before = (
        select(*here, line.c.hop + 1, line.c.total + COLUMN.size)
        .join(line, COLUMN.id == line.c.previous)
        .where(
            OWN,
            line.c.hop < bindparam("hops", type_=Integer),
            line.c.total < bindparam("most", type_=Integer),
        )
    )
    line = line.union_all(before)
    return (
        select(responses, line.c.hop, line.c.total)
        .join(line, COLUMN.id == line.c.id)
        .order_by(line.c.hop.desc())
    )


CHAIN = _chain()

# What nobody names is found whoever has it: for the work that is to be done, and for
# the end of all things.
ANY = select(responses).where(COLUMN.id == bindparam("id"))
_MADE = (OPEN, COLUMN.background == literal_column("1"))
RUNNING = select(func.count().label("running")).where(
    *_MADE, COLUMN.status == "in_progress"
)
BEGUN = select(COLUMN.id).where(*_MADE, COLUMN.status == "in_progress")
_turn = (
    func.row_number()
    .over(partition_by=COLUMN.owner, order_by=(COLUMN.created_at, COLUMN.id))
    .label("turn")
)
_waiting_line = (
    select(COLUMN.id, COLUMN.created_at, _turn)
    .where(*_MADE, COLUMN.status == "queued")
    .subquery()
)
DUE = (
    select(_waiting_line.c.id)
    .order_by(_waiting_line.c.turn, _waiting_line.c.created_at, _waiting_line.c.id)
    .limit(bindparam("limit", type_=Integer))
)
"""The first of each owner, then the second of each: none keeps others waiting."""
_later = responses.alias("later")
OLD = (
    select(COLUMN.id)
    .where(
        COLUMN.created_at < bindparam("before"),
        ~select(_later.c.id).where(_later.c.previous == COLUMN.id).exists(),
    )
    .limit(bindparam("limit", type_=Integer))
)
"""Of a conversation the newest goes first: as long as that is kept, all of it is."""
