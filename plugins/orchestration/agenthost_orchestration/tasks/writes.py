"""What is written of tasks, each in one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agenthost import Conflict, Denied, NotFound, Row
from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from .tables import tasks

PENDING, IN_PROGRESS, COMPLETED = "pending", "in_progress", "completed"
MOST_OPEN = 200
"""Tasks of one agent that are not completed."""
KEPT_SECONDS = 30 * 86_400.0
CLAIM_SECONDS = 86_400.0
"""After which another agent may take what one has not completed."""
LISTED = 100
HIDDEN = frozenset({"owner", "labels"})

_ME: ColumnElement[str] = bindparam("agent")
_STATUS: ColumnElement[str] = bindparam("status")
# An agent sees what it has to do with; what is for nobody in particular, all do.
SEEN = (
    select(tasks)
    .where(
        or_(
            tasks.c.posted_by == _ME,
            tasks.c.claimed_by == _ME,
            tasks.c.assigned_to == _ME,
            tasks.c.assigned_to == "",
        ),
        or_(_STATUS == "", tasks.c.status == _STATUS),
    )
    .order_by(tasks.c.created_at.desc(), tasks.c.id)
    .limit(LISTED)
)


def post(connection: Connection, row: Mapping[str, Any]) -> None:
    """Add a task, and forget those that were completed long ago.

    Raises:
        Conflict: Its agent has too many that are open.
    """
    old = row["created_at"] - KEPT_SECONDS
    done = tasks.c.status == COMPLETED
    connection.execute(delete(tasks).where(done, tasks.c.updated_at < old))
    open_ = select(func.count()).where(~done, tasks.c.posted_by == row["posted_by"])
    if connection.execute(open_).scalar_one() >= MOST_OPEN:
        raise Conflict(
            f"{MOST_OPEN} tasks of yours are not completed; have some done first"
        )
    connection.execute(insert(tasks).values(**row))


def claim(
    connection: Connection, agent_id: str, now: float
) -> Mapping[str, Any] | None:
    """Give the agent the oldest task that waits for it, or for anybody."""
    lapsed = and_(
        tasks.c.status == IN_PROGRESS, tasks.c.updated_at < now - CLAIM_SECONDS
    )
    free = or_(tasks.c.status == PENDING, lapsed)
    mine = tasks.c.assigned_to.in_((agent_id, ""))
    oldest = select(tasks).where(free, mine).order_by(tasks.c.created_at, tasks.c.id)
    # Where daemons share the rows another may take it first: then comes the next.
    for row in connection.execute(oldest.limit(20)).mappings().all():
        same = tasks.c.id == row["id"], tasks.c.updated_at == row["updated_at"]
        taken = update(tasks).where(*same, free)
        values = {"status": IN_PROGRESS, "claimed_by": agent_id, "updated_at": now}
        if connection.execute(taken.values(**values)).rowcount:
            return {**row, **values}
    return None


def complete(
    connection: Connection, task_id: str, agent_id: str, values: Mapping[str, Any]
) -> None:
    """Write down what has become of a task.

    Raises:
        NotFound: There is no such task.
        Denied: Another agent has it, or none.
        Conflict: It is completed already.
    """
    row = connection.execute(select(tasks).where(tasks.c.id == task_id)).mappings()
    task = row.first()
    if task is None:
        raise NotFound("task", task_id)
    if task["claimed_by"] != agent_id:
        raise Denied("you complete only tasks that you have claimed; claim it first")
    if task["status"] == COMPLETED:
        raise Conflict("the task is completed already")
    labels = sorted({*json.loads(task["labels"]), *values["labels"]})
    done = update(tasks).where(
        tasks.c.id == task_id,
        tasks.c.status == IN_PROGRESS,
        tasks.c.claimed_by == agent_id,
    )
    written = {**values, "labels": json.dumps(labels), "status": COMPLETED}
    if not connection.execute(done.values(**written)).rowcount:
        raise Conflict("another agent has taken the task meanwhile")


def shown(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    """Give a task as agents see it."""
    return {each.name: row[each.name] for each in tasks.c if each.name not in HIDDEN}
