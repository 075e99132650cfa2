"""The writes of the queue: each a function of a connection, run in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenthost import Job, JobState
from sqlalchemy import Connection, func, insert, select, update

from .tables import JOB, STEP, job_of

ENDED = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Claim:
    """Jobs to run now with the outputs of their steps, and when the next is due."""

    jobs: tuple[tuple[Job, dict[str, str]], ...]
    next_due: float | None


def add(connection: Connection, row: dict[str, Any]) -> str:
    """Insert a job unless its key is known; give the id of the one that stands."""
    known = connection.execute(
        select(JOB.c.id).where(JOB.c.key == row["key"])
    ).scalar_one_or_none()
    if known is None:
        connection.execute(insert(JOB).values(**row))
    return known or str(row["id"])


def release(connection: Connection, now: float) -> None:
    """Make the jobs that a dead process left running wait for another run."""
    connection.execute(
        update(JOB)
        .where(JOB.c.state == JobState.RUNNING.value)
        .values(state=JobState.PENDING.value, owner=None, updated_at=now)
    )


def claim(
    connection: Connection, kinds: Sequence[str], room: int, owner: str, now: float
) -> Claim:
    """Take due jobs of these kinds, oldest first, each with a new epoch."""
    waiting = (JOB.c.state == JobState.PENDING.value, JOB.c.kind.in_(kinds))
    due = connection.execute(
        select(JOB.c.id)
        .where(*waiting, JOB.c.due <= now)
        .order_by(JOB.c.due, JOB.c.created_at)
        .limit(room)
    ).scalars()
    taken = tuple(start(connection, job, owner, now) for job in due.all())
    later = select(func.min(JOB.c.due)).where(*waiting)
    return Claim(taken, connection.execute(later).scalar_one())


def start(
    connection: Connection, job: str, owner: str, now: float
) -> tuple[Job, dict[str, str]]:
    """Mark a job running and give it with the outputs of its finished steps."""
    connection.execute(
        update(JOB)
        .where(JOB.c.id == job)
        .values(
            state=JobState.RUNNING.value,
            owner=owner,
            epoch=JOB.c.epoch + 1,
            attempts=JOB.c.attempts + 1,
            updated_at=now,
        )
    )
    row = connection.execute(select(JOB).where(JOB.c.id == job)).mappings().one()
    steps = connection.execute(
        select(STEP.c.name, STEP.c.output).where(STEP.c.job == job)
    )
    return job_of(row), {name: output for name, output in steps}  # noqa: C416 - rows


def finish(connection: Connection, job: Job, values: dict[str, Any]) -> None:
    """End a run, unless its epoch has passed."""
    connection.execute(
        update(JOB)
        .where(
            JOB.c.id == job.id,
            JOB.c.epoch == job.epoch,
            JOB.c.state == JobState.RUNNING.value,
        )
        .values(owner=None, **values)
    )


def cancel(connection: Connection, job: str, now: float) -> bool:
    """Cancel a job that has not ended; tell whether this changed it."""
    changed = connection.execute(
        update(JOB)
        .where(JOB.c.id == job, JOB.c.state.not_in([state.value for state in ENDED]))
        .values(
            state=JobState.CANCELLED.value,
            owner=None,
            epoch=JOB.c.epoch + 1,
            updated_at=now,
        )
    )
    return changed.rowcount > 0
