"""What the routes of triggers and events take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypedDict

from .trigger import DEFAULT_PROMPT, LONGEST_COOLDOWN

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Mode = Literal["own", "new", "persistent", "rolling"]
Prompt = Annotated[str, Field(min_length=1, max_length=16_384)]
Fires = Annotated[int, Field(ge=0, le=1_000_000_000, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_COOLDOWN)]
Messages = Annotated[int, Field(ge=0, le=1_000, strict=True)]
Switch = Annotated[bool, Field(strict=True)]
Dollars = Annotated[float, Field(gt=0, le=10_000)]


class Body(BaseModel, defer_build=True):
    """What a request brings; what is misspelt is refused, since it may be a limit."""

    model_config = ConfigDict(extra="forbid")


class DeliveryBody(Body):
    """Where a result goes."""

    kind: str = Field(
        "none",
        pattern=r"^[a-z][a-z0-9_]{0,63}$",
        description="none, session, webhook, or one that a plugin offers",
    )
    target: str = Field(
        "", max_length=2_048, description="A session's id, a URL, whatever it needs"
    )


class CreateTrigger(Body):
    """``POST /api/triggers``."""

    agent_id: UUID
    pattern: JsonValue = Field(description="One of the nine, as a string or an object")
    prompt_template: Prompt = DEFAULT_PROMPT
    enabled: Switch = True
    max_fires: Fires = Field(0, description="Disabled after so many; 0 is never")
    cooldown_secs: Seconds | None = Field(
        None, description="For a subject that it has fired for; null as configured"
    )
    session: Mode = "own"
    keep: Messages = Field(0, description="How many messages a rolling session keeps")
    delivery: DeliveryBody = Field(default_factory=DeliveryBody)
    allowance_usd: Dollars = Field(0.5, description="What it may spend in a day")
    own_events: Switch = Field(
        default=False, description="Whether what the agent itself caused counts"
    )


class ChangeTrigger(Body):
    """``PUT /api/triggers/{id}``; what is left out stays."""

    pattern: JsonValue = None
    prompt_template: Prompt | None = None
    enabled: Switch | None = None
    max_fires: Fires | None = None
    cooldown_secs: Seconds | None = None
    session: Mode | None = None
    keep: Messages | None = None
    delivery: DeliveryBody | None = None
    allowance_usd: Dollars | None = None
    own_events: Switch | None = None


class ListQuery(BaseModel, defer_build=True):
    """Which triggers are listed."""

    agent_id: UUID | None = None


class OccasionsQuery(BaseModel, defer_build=True):
    """How many of a trigger's firings are listed."""

    limit: int = Field(100, ge=1, le=500)


class PublishEvent(Body):
    """``POST /api/events``."""

    type: str = Field(description="A word for what happened, such as order.received")
    data: dict[str, JsonValue] = Field(default_factory=dict)


class DeliveryItem(TypedDict):
    """Where a result goes."""

    kind: str
    target: str


class TriggerItem(TypedDict):
    """A trigger."""

    id: Id
    agent_id: Id
    pattern: dict[str, Any]
    prompt_template: str
    enabled: bool
    fire_count: int
    max_fires: int
    cooldown_secs: float | None
    session: Mode
    keep: int
    delivery: DeliveryItem
    allowance_usd: float
    own_events: bool
    paused_reason: str | None
    held_back: int
    created_by: str
    created_at: Moment
    last_fired_at: Moment | None


class CreatedTrigger(TypedDict):
    """Answer of ``POST /api/triggers``."""

    trigger_id: Id
    agent_id: Id


class TriggerStatus(TypedDict):
    """Answer of ``PUT`` and ``DELETE``: what became of which."""

    status: str
    trigger_id: Id


class PublishedEvent(TypedDict):
    """Answer of ``POST /api/events``."""

    status: str
    event_id: Id
