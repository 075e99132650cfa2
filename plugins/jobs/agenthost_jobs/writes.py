"""The writes of the queue: each a function of a connection, run in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost import Job, JobState, Json, Superseded
from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    insert,
    select,
    update,
)

from .pauses import pause
from .rows import job_of
from .tables import JOB, STEP

Chance = Callable[[], float]

ENDED = (JobState.DONE, JobState.FAILED, JobState.POISONED, JobState.CANCELLED)
ENDED_NAMES = [state.value for state in ENDED]
RUNNING = JOB.c.state == JobState.RUNNING.value
NOBODY = {"holder": None, "until": None}
"""Whoever held the lease holds it no more."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who runs what is claimed now, and until when this counts unless renewed."""

    holder: str
    now: float
    until: float


@dataclass(frozen=True, slots=True)
class Held:
    """Whose lease ends when, as it was last seen."""

    holder: str
    until: float


@dataclass(frozen=True, slots=True)
class Claim:
    """Jobs to run now with the outputs of their steps, and when the next is due."""

    jobs: tuple[tuple[Job, dict[str, str]], ...]
    next_due: float | None


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run failed, and how many attempts its kind has."""

    error: str
    attempts: int


def add(connection: Connection, row: dict[str, Any]) -> str:
    """Insert a job unless its key is known; give the id of the one that stands."""
    known = connection.execute(
        select(JOB.c.id).where(JOB.c.key == row["key"])
    ).scalar_one_or_none()
    if known is None:
        connection.execute(insert(JOB).values(**row))
    return known or str(row["id"])


def release(
    connection: Connection, now: float, chance: Chance, dead: Held | None = None
) -> None:
    """Let what a dead process left running wait for its next attempt.

    The first death costs no pause: mostly it was not this job's doing.

    Args:
        connection: In a transaction.
        now: The time.
        chance: Decides about a part of the pauses.
        dead: Whose runs it is about; one that has said since that it lives keeps them.
            Without it all are left.
    """
    whose = (RUNNING,) if dead is None else (RUNNING, JOB.c.holder == dead.holder)
    if dead is not None:
        newest = select(func.max(JOB.c.until)).where(*whose)
        if connection.execute(newest).scalar_one() != dead.until:
            return
    left = connection.execute(select(JOB.c.id, JOB.c.attempts).where(*whose))
    for row in left.all():
        due = now + pause(row.attempts - 1, chance())
        waiting = {"state": JobState.PENDING.value, "due": due, "updated_at": now}
        connection.execute(
            update(JOB).where(JOB.c.id == row.id).values(**waiting, **NOBODY)
        )


def hand_back(connection: Connection, holder: str, now: float) -> None:
    """Let what an orderly stop cut short wait, as if this run had not been."""
    connection.execute(
        update(JOB)
        .where(RUNNING, JOB.c.holder == holder)
        .values(
            state=JobState.PENDING.value,
            attempts=JOB.c.attempts - 1,
            updated_at=now,
            **NOBODY,
        )
    )


def claim(
    connection: Connection, attempts: Mapping[str, int], room: int, lease: Lease
) -> Claim:
    """Take due jobs, oldest first, each with a new epoch.

    Args:
        connection: In a transaction.
        attempts: How many each kind that can be run has.
        room: How many to take at most.
        lease: Who takes them.
    """
    waiting = (JOB.c.state == JobState.PENDING.value, JOB.c.kind.in_(list(attempts)))
    due = connection.execute(
        select(JOB.c.id, JOB.c.kind, JOB.c.attempts)
        .where(*waiting, JOB.c.due <= lease.now)
        .order_by(JOB.c.due, JOB.c.created_at)
        .limit(room)
    )
    taken = []
    for row in due.all():
        if row.attempts < attempts[row.kind]:
            taken.append(start(connection, row.id, lease))
        else:
            poison(connection, row.id, row.attempts, lease.now)
    later = select(func.min(JOB.c.due)).where(*waiting)
    return Claim(tuple(taken), connection.execute(later).scalar_one())


def start(connection: Connection, job: str, lease: Lease) -> tuple[Job, dict[str, str]]:
    """Mark a job running and give it with the outputs of its finished steps."""
    connection.execute(
        update(JOB)
        .where(JOB.c.id == job)
        .values(
            state=JobState.RUNNING.value,
            holder=lease.holder,
            until=lease.until,
            epoch=JOB.c.epoch + 1,
            attempts=JOB.c.attempts + 1,
            updated_at=lease.now,
        )
    )
    row = connection.execute(select(JOB).where(JOB.c.id == job)).mappings().one()
    steps = connection.execute(
        select(STEP.c.name, STEP.c.output).where(STEP.c.job == job)
    )
    return job_of(row), {name: output for name, output in steps}  # noqa: C416 - rows


def poison(connection: Connection, job: str, attempts: int, now: float) -> None:
    """End a job whose last attempt died with the process; one that fails is ended."""
    error = f"the process died while it ran; it was tried {attempts} times"
    ended = {"state": JobState.POISONED.value, "error": error, "updated_at": now}
    connection.execute(update(JOB).where(JOB.c.id == job).values(**ended))


def renew(connection: Connection, holder: str, until: float) -> set[str]:
    """Say that whoever runs these jobs is alive; give those that it still holds."""
    own = (RUNNING, JOB.c.holder == holder)
    connection.execute(update(JOB).where(*own).values(until=until))
    return {*connection.execute(select(JOB.c.id).where(*own)).scalars()}


def current(job: Job) -> ColumnElement[bool]:
    """Choose the job's row while this run of it counts."""
    return and_(
        JOB.c.id == job.id,
        RUNNING,
        JOB.c.epoch == job.epoch,
        JOB.c.holder == job.holder,
    )


def progress(connection: Connection, job: Job) -> None:
    """Count a job's attempts anew, for it finishes a step.

    Raises:
        Superseded: The job was cancelled or claimed again.
    """
    counted = update(JOB).where(current(job)).values(attempts=1)
    if not connection.execute(counted).rowcount:
        raise Superseded("the job was cancelled, or runs again elsewhere")


def finish(connection: Connection, job: Job, result: str, now: float) -> None:
    """End a job well, unless its epoch has passed."""
    done = {"state": JobState.DONE.value, "result": result, "error": None}
    connection.execute(
        update(JOB).where(current(job)).values(updated_at=now, **done, **NOBODY)
    )


def fail(
    connection: Connection, job: Job, failure: Failure, now: float, chance: Chance
) -> None:
    """Let a job wait for its next attempt, or end it when it had its last."""
    attempts = connection.execute(
        select(JOB.c.attempts).where(current(job))
    ).scalar_one_or_none()
    if attempts is None:
        return
    ended = {"state": JobState.FAILED.value}
    again = {
        "state": JobState.PENDING.value,
        "due": now + pause(attempts, chance()),
    }
    connection.execute(
        update(JOB)
        .where(JOB.c.id == job.id)
        .values(
            error=failure.error,
            updated_at=now,
            **(again if attempts < failure.attempts else ended),
            **NOBODY,
        )
    )


def cancel(connection: Connection, job: str, now: float) -> bool:
    """Cancel a job that has not ended; tell whether this changed it."""
    changed = connection.execute(
        update(JOB)
        .where(JOB.c.id == job, JOB.c.state.not_in(ENDED_NAMES))
        .values(
            state=JobState.CANCELLED.value,
            epoch=JOB.c.epoch + 1,
            updated_at=now,
            **NOBODY,
        )
    )
    return changed.rowcount > 0


def forget(connection: Connection, jobs: Sequence[str]) -> None:
    """Delete jobs with their steps."""
    connection.execute(
        delete(JOB).where(JOB.c.id.in_(jobs), JOB.c.state.in_(ENDED_NAMES))
    )


def remember(
    connection: Connection,
    job: Job,
    name: str,
    output: str,
    rows: Callable[[Connection, Json], None] | None,
) -> None:
    """Store the output of a step and its rows, once, if the run still counts."""
    progress(connection, job)
    known = select(STEP.c.name).where(STEP.c.job == job.id, STEP.c.name == name)
    if connection.execute(known).first():
        return
    connection.execute(insert(STEP).values(job=job.id, name=name, output=output))
    if rows:
        rows(connection, json.loads(output))
