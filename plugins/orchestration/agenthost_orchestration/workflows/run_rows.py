"""A run of a workflow and its step records, and how their rows read."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from agenthost import Row
from agenthost_values.value_class import value_class

from .definition import WorkflowStep
from .rows import step_of
from .walk import Outcome

OPEN = "SELECT id FROM workflow_runs WHERE ended = 0 ORDER BY created_at, id"
OLD = "SELECT 1 FROM workflow_runs WHERE ended = 1 AND completed_at < :before LIMIT 1"
"""Texts, since a start reads them and imports no SQLAlchemy."""


class RunState(StrEnum):
    """Where a run stands; only PENDING and RUNNING ones can still change."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


@value_class
class Run:
    """A run as it stands; times are epoch seconds.

    Args:
        id: Its own.
        workflow_id: Whose run it is.
        workflow_name: As it was called when the run was asked for.
        steps: As they stood then.
        input: What it was asked with.
        digest: What its key was given for, "" without a key.
        state: Where it stands.
        output: What came of it, None while nothing has.
        error: What it failed with, in words.
        code: The code of that.
        max_cost_micro_usd: What it may spend, None for no limit.
        cost_micro_usd: What its calls took.
        apart_micro_usd: What agents took that its unfinished calls had asked.
        seconds: How long it has run.
        leg: How often it stopped to wait for a person.
        waiting: The ids of the turns that it waits for, or waited for when it ended:
            whoever cleans up after it withdraws their questions.
        steps_completed: How many calls gave an answer.
        owner: Who asked for it (``kind:name``).
        person: Who is behind that.
        labels: Those of all that it knows.
        depth: How many events led here.
        created_at: When it was asked for.
        started_at: When it began, None while it has not.
        completed_at: When it ended, None while it has not.
        asks: What a person may be asked over its limit, as JSON; "" for nothing.
    """

    id: str
    workflow_id: str
    workflow_name: str
    steps: tuple[WorkflowStep, ...]
    input: str
    digest: str
    state: RunState
    output: str | None
    error: str
    code: str
    max_cost_micro_usd: int | None
    cost_micro_usd: int
    apart_micro_usd: int
    seconds: float
    leg: int
    waiting: tuple[str, ...]
    steps_completed: int
    owner: str
    person: str
    labels: frozenset[str]
    depth: int
    created_at: float
    started_at: float | None
    completed_at: float | None
    asks: str

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state not in {RunState.PENDING, RunState.RUNNING}


@value_class
class StepRecord:
    """One call of an agent in a run, and what came of it.

    ``seq`` numbers a run's records as they were written, from 1. ``output`` is None
    where the call failed; then ``error`` says why. ``session_id`` is that of a session
    which ends with the run, "" for the agent's own.
    """

    run_id: str
    seq: int
    key: str
    index: int
    name: str
    attempt: int
    agent_id: str
    agent_name: str
    session_id: str
    output: str | None
    error: str
    code: str
    final: bool
    input_tokens: int
    output_tokens: int
    cost_micro_usd: int
    started_at: float
    ended_at: float
    owner: str
    labels: frozenset[str]

    @property
    def outcome(self) -> Outcome:
        """What came of it, for the walk."""
        return Outcome(self.output, self.error, self.code, self.final)


def run_of(row: Row | Any) -> Run:
    """Read a run from its row."""
    told: dict[str, Any] = {name: row[name] for name in _RUN if name != "steps"}
    told["steps"] = tuple(map(step_of, json.loads(row["definition"])))
    told["state"] = RunState(row["state"])
    told["waiting"] = tuple(json.loads(row["waiting"]))
    told["labels"] = frozenset(json.loads(row["labels"]))
    return Run(**told)


def record_of(row: Row | Any) -> StepRecord:
    """Read a step record from its row."""
    told: dict[str, Any] = {name: row[name] for name in _RECORD if name != "index"}
    told["index"] = row["step_index"]
    told["final"] = bool(row["final"])
    told["labels"] = frozenset(json.loads(row["labels"]))
    return StepRecord(**told)


def row_of(record: StepRecord) -> dict[str, Any]:
    """Write a step record as its row."""
    row: dict[str, Any] = {name: getattr(record, name) for name in _RECORD}
    row["step_index"] = row.pop("index")
    row["final"] = int(record.final)
    row["labels"] = json.dumps(sorted(record.labels))
    return row


_RUN: tuple[str, ...] = Run.__match_args__
_RECORD: tuple[str, ...] = StepRecord.__match_args__
