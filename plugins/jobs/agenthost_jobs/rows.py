"""How a row of a job reads."""

from __future__ import annotations

import json
from typing import Any

from agenthost import InvalidInput, Job, JobState, Json, Row

LEFT_RUNNING = "SELECT 1 FROM job WHERE state = 'running' LIMIT 1"
PENDING = "SELECT 1 FROM job WHERE state = 'pending' LIMIT 1"
HELD = (
    "SELECT holder, max(until) AS until FROM job "
    "WHERE state = 'running' AND holder <> :me GROUP BY holder"
)
EXPIRED = (
    "SELECT id FROM job WHERE (state = 'done' OR state = 'failed' "
    "OR state = 'poisoned' OR state = 'cancelled') AND updated_at < :before "
    "LIMIT :limit"
)
"""Texts, since a start reads them and imports no SQLAlchemy."""


def job_of(row: Row | Any) -> Job:
    """Read a job from its row."""
    return Job(
        id=row["id"],
        key=row["key"],
        kind=row["kind"],
        payload=json.loads(row["payload"]),
        state=JobState(row["state"]),
        due=row["due"],
        epoch=row["epoch"],
        attempts=row["attempts"],
        result=None if row["result"] is None else json.loads(row["result"]),
        error=row["error"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        holder=row["holder"],
        until=row["until"],
        owner=row["owner"],
        labels=frozenset(json.loads(row["labels"])),
    )


def written(field: str, value: Json) -> str:
    """Write a JSON value as text.

    Raises:
        InvalidInput: It is not JSON.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field, f"is not JSON: {error}") from None
