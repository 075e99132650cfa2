"""What the routes of occasions take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
StateName = Literal[
    "due",
    "running",
    "waiting",
    "done",
    "failed",
    "missed",
    "refused",
    "cancelled",
]


class ListQuery(BaseModel, defer_build=True):
    """Which occasions are listed; ``after`` is the last one of the page before."""

    source: str | None = Field(None, max_length=100)
    source_id: str | None = Field(None, max_length=200)
    state: StateName | None = None
    limit: int = Field(100, ge=1, le=500)
    after: str = Field("", max_length=200)


class OccasionItem(TypedDict):
    """An occasion in a list."""

    id: str
    source: str
    source_id: str
    key: str
    at: Moment
    state: StateName
    detail: str
    code: str
    agent_id: str
    turn_id: str
    run_id: str
    cost_usd: float
    delivered: str
    created_at: Moment
    ended_at: Moment | None
    owner: str


class OccasionDetail(OccasionItem):
    """An occasion with what it was made from and what came of it."""

    payload: dict[str, Any]
    text: str
    labels: list[str]


class OccasionList(TypedDict):
    """Occasions, newest first; ``total`` counts what is listed."""

    occasions: list[OccasionItem]
    total: int
