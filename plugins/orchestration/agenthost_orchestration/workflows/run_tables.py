"""The tables of runs, what is read of them, and their writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agenthost import Keep, Superseded
from sqlalchemy import (
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from .run_rows import RunState, StepRecord, row_of

BATCH = 20
"""Runs that are forgotten in one write: their records go with them."""

metadata = MetaData()

runs = Table(
    "workflow_runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workflow_id", Text, nullable=False),
    Column("workflow_name", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("input", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended", Integer, nullable=False),
    Column("output", Text),
    Column("error", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("max_cost_micro_usd", Integer),
    Column("cost_micro_usd", Integer, nullable=False),
    Column("apart_micro_usd", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("leg", Integer, nullable=False),
    Column("waiting", Text, nullable=False),
    Column("steps_completed", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("completed_at", Float),
    # What a person may be asked when it has spent all that it may.
    Column("asks", Text, nullable=False, server_default=""),
    Index("workflow_runs_by_workflow", "workflow_id", "created_at", "id"),
    Index("workflow_runs_by_end", "ended", "completed_at"),
)

records = Table(
    "workflow_run_steps",
    metadata,
    Column("run_id", Text, ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("step_index", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("output", Text),
    Column("error", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("final", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_micro_usd", Integer, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)

ONE = select(runs).where(runs.c.id == bindparam("id"))
RECORDS = (
    select(records)
    .where(records.c.run_id == bindparam("run"), records.c.seq > bindparam("after"))
    .order_by(records.c.seq)
)
_LAST = select(runs.c.created_at, runs.c.id).where(runs.c.id == bindparam("after"))
_last = _LAST.subquery()
LISTED = (
    select(runs)
    .where(
        runs.c.workflow_id == bindparam("workflow"),
        or_(
            bindparam("after", type_=Text) == "",
            runs.c.created_at < select(_last.c.created_at).scalar_subquery(),
            and_(
                runs.c.created_at == select(_last.c.created_at).scalar_subquery(),
                runs.c.id < bindparam("after"),
            ),
        ),
    )
    .order_by(runs.c.created_at.desc(), runs.c.id.desc())
    .limit(bindparam("limit", type_=Integer))
)


def add(connection: Connection, row: dict[str, Any], keep: Keep | None) -> str | None:
    """Write a run, once; give the digest of the one that stands, None for a new one."""
    known = connection.execute(
        select(runs.c.digest).where(runs.c.id == row["id"])
    ).scalar_one_or_none()
    if known is None:
        connection.execute(insert(runs).values(**row))
        if keep is not None:
            keep(connection)
    return known


def change(
    connection: Connection, run: str, values: dict[str, Any], keep: Keep | None = None
) -> bool:
    """Change a run that has not ended; tell whether this did."""
    changed = connection.execute(
        update(runs).where(runs.c.id == run, runs.c.ended == 0).values(**values)
    )
    if changed.rowcount and keep is not None:
        keep(connection)
    return changed.rowcount > 0


def change_mine(
    connection: Connection, run: str, values: dict[str, Any], keep: Keep | None = None
) -> None:
    """Change a run that a job has in hand.

    Raises:
        Superseded: It has ended meanwhile: it was cancelled.
    """
    if not change(connection, run, values, keep):
        raise Superseded("the run has ended meanwhile")


def record(connection: Connection, step: StepRecord, seconds: float) -> None:
    """Write what came of a call, and count it.

    Raises:
        Superseded: The run has ended meanwhile: it was cancelled.
    """
    before = connection.execute(
        select(func.max(records.c.seq)).where(records.c.run_id == step.run_id)
    ).scalar_one()
    row = row_of(step) | {"seq": (before or 0) + 1}
    connection.execute(insert(records).values(**row))
    labels = connection.execute(
        select(runs.c.labels).where(runs.c.id == step.run_id)
    ).scalar_one()
    counted = {
        "cost_micro_usd": runs.c.cost_micro_usd + step.cost_micro_usd,
        "steps_completed": runs.c.steps_completed + int(step.output is not None),
        "labels": json.dumps(sorted({*json.loads(labels), *step.labels})),
        "seconds": seconds,
    }
    change_mine(connection, step.run_id, counted)


def forget(connection: Connection, before: float) -> int:
    """Delete some of the runs that ended long ago; tell how many."""
    old = select(runs.c.id).where(runs.c.ended == 1, runs.c.completed_at < before)
    chosen: Sequence[str] = connection.execute(old.limit(BATCH)).scalars().all()
    connection.execute(delete(records).where(records.c.run_id.in_(chosen)))
    connection.execute(delete(runs).where(runs.c.id.in_(chosen)))
    return len(chosen)


def ending(state: RunState, now: float, **values: Any) -> dict[str, Any]:
    """What a run's row says from its end on."""
    ended = {"state": state.value, "ended": 1, "completed_at": now}
    return ended | values
