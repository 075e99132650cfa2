"""What the routes of approvals take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
StateName = Literal["pending", "approved", "denied", "expired", "cancelled"]
REASON_LENGTH = 1_000


class ListQuery(BaseModel):
    """Which approvals are listed."""

    state: StateName | None = None
    agent_id: UUID | None = None
    turn_id: UUID | None = None
    limit: int = Field(100, ge=1, le=500)


class Approve(BaseModel, extra="forbid", defer_build=True):
    """A yes. ``digest``, when it is given, is that of what was read."""

    values: dict[str, Any] = Field(default_factory=dict)
    digest: str | None = None
    remember: Literal["once", "session", "pattern"] = Field(
        "once", description="What the yes holds for, of the same tool and question"
    )
    pattern: dict[str, str] = Field(
        default_factory=dict, description="A text for each argument; * is anything"
    )


class Deny(BaseModel, extra="forbid", defer_build=True):
    """A no, and why, for the model."""

    reason: str = Field("", max_length=REASON_LENGTH)
    digest: str | None = None


class ExpenseShown(TypedDict):
    """What is asked about money."""

    purse: str
    purpose: str
    used_usd: float
    limit_usd: float
    more_usd: float


class ApprovalItem(TypedDict):
    """An approval in a list; ``tool`` is empty where it is about an expense."""

    id: Id
    state: StateName
    kind: Literal["tool_call", "expense"]
    tool: str
    expense: ExpenseShown | None
    question: str
    agent_id: Id
    agent_name: str
    session_id: Id
    turn_id: Id
    asked_by: str
    may_answer: str
    created_at: Moment
    deadline: Moment
    answered_by: str | None
    answered_at: Moment | None
    reason: str | None
    remember: Literal["once", "session", "pattern"]
    pattern: dict[str, str]


class ApprovalDetail(ApprovalItem):
    """An approval with all that a person reads before they answer.

    ``exact_pattern`` is what its call itself fits, to begin a pattern with; null where
    a yes holds for its call alone.
    """

    arguments: dict[str, Any]
    schema: dict[str, Any] | None
    choices: list[str]
    url: str | None
    digest: str
    values: dict[str, Any]
    exact_pattern: dict[str, str] | None


class ApprovalList(TypedDict):
    """Approvals; ``total`` counts what is listed."""

    approvals: list[ApprovalItem]
    total: int
