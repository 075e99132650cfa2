"""What the routes of schedules take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field, model_validator
from typing_extensions import TypedDict

from .when import LONGEST, SHORTEST

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
SessionName = Literal["new", "persistent", "rolling", "own"]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Long = Annotated[str, Field(max_length=65_536)]
Allowance = Annotated[float, Field(gt=0, le=10_000)]
Keep = Annotated[int, Field(ge=2, le=1_000)]
Hours = Annotated[str, Field(max_length=20)]


class WhenBody(BaseModel, extra="forbid", defer_build=True):
    """When it is due: one of ``cron``, ``every_secs`` and ``at``."""

    cron: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    every_secs: Annotated[int, Field(ge=SHORTEST, le=LONGEST)] | None = None
    at: AwareDatetime | None = None
    zone: Annotated[str, Field(max_length=64)] = "UTC"

    @model_validator(mode="after")
    def _one(self) -> WhenBody:
        if sum(each is not None for each in (self.cron, self.every_secs, self.at)) != 1:
            raise ValueError("give one of cron, every_secs and at")
        return self


class WhatBody(BaseModel, extra="forbid", defer_build=True):
    """What is done: an ``agent`` told a ``prompt``, a ``workflow``, or an ``event``."""

    agent: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    prompt: Annotated[str, Field(min_length=1, max_length=65_536)] | None = None
    workflow: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    input: Long = ""
    event: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    data: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one(self) -> WhatBody:
        if (
            sum(each is not None for each in (self.agent, self.workflow, self.event))
            != 1
        ):
            raise ValueError("give one of agent, workflow and event")
        if (self.agent is None) != (self.prompt is None):
            raise ValueError("agent and prompt go together")
        if self.workflow is None and self.input:
            raise ValueError("input goes with a workflow")
        if self.event is None and self.data:
            raise ValueError("data goes with an event")
        return self


class Within(BaseModel, extra="forbid", defer_build=True):
    """A time is done late only so many seconds after it."""

    within_secs: int = Field(ge=1, le=LONGEST)


class DeliveryBody(BaseModel, extra="forbid", defer_build=True):
    """Where the result goes."""

    kind: Annotated[str, Field(min_length=1, max_length=64)] = "none"
    target: Annotated[str, Field(max_length=2_000)] = ""


class ChangeSchedule(BaseModel, extra="forbid", defer_build=True):
    """What is to be different; what is left out stays as it is."""

    name: Name | None = None
    when: WhenBody | None = None
    what: WhatBody | None = None
    session: SessionName | None = None
    keep: Keep | None = None
    misfire: Literal["skip", "once"] | Within | None = None
    delivery: DeliveryBody | None = None
    allowance_usd: Allowance | None = None
    quiet_hours: Hours | None = None
    enabled: bool | None = None


class CreateSchedule(ChangeSchedule):
    """A new schedule; what is left out has its default."""

    name: Name
    when: WhenBody
    what: WhatBody


class NextQuery(BaseModel, defer_build=True):
    """How many of the next times are told."""

    count: int = Field(5, ge=1, le=100)


class OccasionsQuery(BaseModel, defer_build=True):
    """How many occasions are listed, and behind which; the newest by default."""

    limit: int = Field(100, ge=1, le=500)
    after: UUID | None = None


class WhenItem(TypedDict, total=False):
    """When it is due."""

    cron: str
    every_secs: int
    at: Moment
    zone: str


class WhatItem(TypedDict, total=False):
    """What is done."""

    agent_id: Id
    prompt: str
    workflow: str
    input: str
    event: str
    data: dict[str, Any]


class DeliveryItem(TypedDict):
    """Where the result goes."""

    kind: str
    target: str


class WithinItem(TypedDict):
    """How late a time is done, at most."""

    within_secs: int


class CreatorItem(TypedDict):
    """With whose rights it is done."""

    kind: str
    name: str


class ScheduleItem(TypedDict):
    """A schedule as it stands."""

    id: Id
    name: str
    when: WhenItem
    what: WhatItem
    session: SessionName
    keep: int
    misfire: Literal["skip", "once"] | WithinItem
    delivery: DeliveryItem
    allowance_usd: float
    quiet_hours: str
    enabled: bool
    paused: str | None
    origin: Literal["api", "agent", "manifest"]
    creator: CreatorItem
    next_at: Moment | None
    created_at: Moment
    updated_at: Moment


class ScheduleList(TypedDict):
    """All schedules, oldest first."""

    schedules: list[ScheduleItem]
    total: int


class Begun(TypedDict):
    """What was asked for is about to be done."""

    occasion_id: Id


class Gone(TypedDict):
    """A deleted schedule."""

    status: Literal["deleted"]
    id: Id


class NextTimes(TypedDict):
    """The times that lie ahead, and the same as the zone's clocks show them."""

    times: list[Moment]
    local: list[str]
    zone: str


class OccasionItem(TypedDict):
    """What became of a time."""

    id: Id
    key: str
    at: Moment
    state: str
    detail: str
    code: str
    turn_id: str | None
    run_id: str | None
    text: str
    cost_usd: float
    delivered: str
    created_at: Moment
    ended_at: Moment | None


class OccasionList(TypedDict):
    """What became of the times of a schedule, newest first."""

    occasions: list[OccasionItem]
    total: int
