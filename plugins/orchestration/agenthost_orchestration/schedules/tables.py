"""The table of schedules, and its writes: functions of a connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agenthost import Conflict, NotFound
from agenthost_values.value_class import value_class
from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    delete,
    func,
    insert,
    not_,
    select,
    text,
    update,
)

from .schedule import Schedule, row_of, schedule_of

FORGOTTEN = 30 * 86_400.0
"""Seconds after which a schedule is forgotten that is never due again."""
COURSE = ("enabled", "paused", "next_at")

metadata = MetaData()

schedules = Table(
    "schedules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("agent_id", Text, nullable=False, index=True),
    Column("terms", Text, nullable=False),
    Column("enabled", Integer, nullable=False),
    Column("paused", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("by_agent", Integer, nullable=False),
    Column("allowance", Integer, nullable=False),
    Column("next_at", REAL),
    Column("last", Text, nullable=False),
    Column("held", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("updated_at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
OVER = and_(schedules.c.next_at.is_(None), schedules.c.enabled == 1)
"""Never due again."""
_ENABLED = text("enabled = 1")
Index(
    "schedules_due",
    schedules.c.next_at,
    sqlite_where=_ENABLED,
    postgresql_where=_ENABLED,
)


@value_class
class Limits:
    """How many there may be, and what an agent may have made for itself."""

    most: int
    per_agent: int
    allowance: int


def add(connection: Connection, schedule: Schedule, limits: Limits) -> None:
    """Keep a new schedule, and forget those that were over long ago.

    Raises:
        Conflict: There are too many.
    """
    _forget(connection, schedule.created_at - FORGOTTEN)
    if not schedule.origin:
        _check_room(connection, schedule, limits)
    connection.execute(insert(schedules).values(row_of(schedule)))


def change(
    connection: Connection, schedule: Schedule, before: Schedule, limits: Limits
) -> None:
    """Keep a schedule as it was changed.

    Raises:
        NotFound: It has been deleted.
        Conflict: It was changed by somebody else, or there are too many.
    """
    if before.over and not schedule.over and not before.origin:
        _check_room(connection, schedule, limits)
    row = row_of(replace(schedule, revision=before.revision + 1))
    anew = (schedule.when, schedule.enabled) != (before.when, before.enabled)
    # What it does, and how that ends, is written by others meanwhile.
    for name in ("last", "held", *(() if anew else COURSE)):
        del row[name]
    own = schedules.c.id == schedule.id
    same = schedules.c.revision == before.revision
    if not connection.execute(update(schedules).where(own, same).values(row)).rowcount:
        if connection.execute(select(schedules.c.id).where(own)).first() is None:
            raise NotFound("schedule", schedule.id)
        raise Conflict("the schedule was changed meanwhile; read it again")


def keep(connection: Connection, schedule: Schedule) -> None:
    """Have the schedule of a manifest be as it says, whatever there was."""
    row = row_of(schedule)
    del row["created_at"]
    changed = update(schedules).where(schedules.c.id == schedule.id).values(row)
    if not connection.execute(changed).rowcount:
        connection.execute(insert(schedules).values(row_of(schedule)))


def remove(connection: Connection, schedule_id: str) -> None:
    """Delete a schedule.

    Raises:
        NotFound: There is none.
    """
    own = schedules.c.id == schedule_id
    if not connection.execute(delete(schedules).where(own)).rowcount:
        raise NotFound("schedule", schedule_id)


def remove_of_agent(connection: Connection, agent_id: str) -> None:
    """Delete all schedules whose turns are an agent's."""
    connection.execute(delete(schedules).where(schedules.c.agent_id == agent_id))


def move(connection: Connection, schedule: Schedule, values: Mapping[str, Any]) -> bool:
    """Go on with a schedule, unless it was changed since it was read."""
    moved = (
        update(schedules)
        .where(
            schedules.c.id == schedule.id,
            schedules.c.enabled == 1,
            schedules.c.next_at == schedule.next_at,
            schedules.c.revision == schedule.revision,
        )
        .values(values)
    )
    return bool(connection.execute(moved).rowcount)


def settle(
    connection: Connection, schedule_id: str, values: Mapping[str, Any]
) -> Schedule | None:
    """Change columns of a schedule; give it as it was, None where it is gone."""
    own = schedules.c.id == schedule_id
    row = connection.execute(select(schedules).where(own)).mappings().first()
    if row is None:
        return None
    connection.execute(update(schedules).where(own).values(values))
    return schedule_of(row)


def _forget(connection: Connection, before: float) -> None:
    over = delete(schedules).where(
        OVER, schedules.c.origin == "", schedules.c.updated_at < before
    )
    connection.execute(over)


def _check_room(connection: Connection, schedule: Schedule, limits: Limits) -> None:
    """Refuse one too many; those that are never due again take no room."""
    counted = select(func.count(), func.coalesce(func.sum(schedules.c.allowance), 0))
    living = counted.where(
        schedules.c.origin == "",
        schedules.c.id != schedule.id,
        not_(OVER),
    )
    there, _ = connection.execute(living).one()
    if there >= limits.most:
        raise Conflict(
            f"there are {there} schedules, as many as [schedules] max allows; "
            "delete one that is not needed"
        )
    if not schedule.by_agent:
        return
    agent = schedules.c.agent_id == schedule.errand.agent_id
    own, spent = connection.execute(
        living.where(agent, schedules.c.by_agent == 1)
    ).one()
    if own >= limits.per_agent:
        raise Conflict(f"you have {own} schedules, which is the most; delete one")
    if spent + schedule.errand.allowance_micro_usd > limits.allowance:
        raise Conflict(
            "your schedules together may spend "
            f"{limits.allowance / 1_000_000:.2f} USD a day; delete one, or ask for less"
        )
