"""What the routes of runs take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
StateName = Literal["Pending", "Running", "Completed", "Failed", "Cancelled"]


class StartRun(BaseModel, defer_build=True):
    """``POST /api/workflows/{id}/run``."""

    input: str = Field(
        "",
        description="What {{input}} is in the first step, at most 262,144 characters",
    )
    max_cost_usd: float | None = Field(
        None,
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="US dollars that the run, and all turns it starts, may spend "
        "together; the workflow's own limit holds too",
    )

    @property
    def max_cost_micro_usd(self) -> int | None:
        """The same in micro-USD, at least one."""
        dollars = self.max_cost_usd
        return None if dollars is None else max(int(dollars * 1_000_000), 1)


class StartQuery(BaseModel, defer_build=True):
    """How a run is started."""

    wait: bool = Field(
        default=True, description="Wait for the end; else the answer is 202 at once"
    )


class RunsQuery(BaseModel, defer_build=True):
    """Which runs are listed."""

    limit: int = Field(100, ge=1, le=500)
    after: UUID | None = Field(None, description="Only those behind the run with this")


class RunStarted(TypedDict):
    """A run that goes on by itself.

    ``status`` is ``running``, or ``waiting`` where it goes on once a person has
    answered what its turns ``waiting`` ask.
    """

    run_id: Id
    status: Literal["running", "waiting"]
    waiting: NotRequired[list[Id]]


class RunDone(TypedDict):
    """A run that has completed."""

    run_id: Id
    output: str
    status: Literal["completed"]


class RunItem(TypedDict):
    """A run in a list; ``waiting`` are the turns that wait for a person."""

    id: Id
    workflow_id: Id
    workflow_name: str
    state: StateName
    steps_completed: int
    cost_usd: float
    waiting: list[Id]
    started_by: str
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None


class StepItem(TypedDict):
    """One call of an agent; ``output`` is null where it failed."""

    seq: int
    step: int
    name: str
    attempt: int
    agent_id: str
    agent_name: str
    output: str | None
    error: str | None
    code: str | None
    input_tokens: int
    output_tokens: int
    cost_usd: float
    duration_ms: int
    started_at: Moment
    completed_at: Moment


class RunDetail(RunItem):
    """A run with its step records, in the order in which they ended."""

    input: str
    output: str | None
    error: str | None
    code: str | None
    max_cost_usd: float | None
    steps: list[StepItem]


class StepStarted(TypedDict):
    """The data of ``step_started``."""

    step: int
    name: str
    attempt: int


class RunEvents(TypedDict):
    """The data of a run's events, by the event's name."""

    step_started: StepStarted
    step_ended: StepItem
    waiting: dict[str, Any]
    run_ended: RunItem
