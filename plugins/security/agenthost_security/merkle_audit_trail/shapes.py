"""What the routes of the audit trail take and give."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import AwareDatetime, BaseModel, Field
from typing_extensions import TypedDict

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
HIGHEST = 2**63 - 1


class RecentQuery(BaseModel, defer_build=True):
    """Which entries are shown; above 500 ``limit`` is 500."""

    limit: int = Field(50, ge=1)
    before: int | None = Field(None, ge=1, le=HIGHEST)
    event_type: str | None = Field(None, max_length=200)
    agent_id: str | None = Field(None, max_length=512)
    actor: str | None = Field(None, max_length=512)
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


class HeadsQuery(BaseModel, defer_build=True):
    """How many of the newest heads are shown; above 500 it is 500."""

    limit: int = Field(50, ge=1)


class ConsistencyQuery(BaseModel, defer_build=True):
    """The size of the earlier tree."""

    first: int = Field(ge=1, le=HIGHEST)


class AuditEntry(TypedDict):
    """An entry."""

    id: int
    timestamp: Moment
    event_type: str
    agent_id: str
    actor: str
    details: str
    hash: str
    prev_hash: str
    node: str
    number: int


class AuditList(TypedDict):
    """``GET /api/audit/recent``: newest first; ``before`` asks for what follows."""

    entries: list[AuditEntry]
    total: int
    next_before: int | None


class Verification(TypedDict):
    """``GET /api/audit/verify``."""

    status: Literal["valid", "broken"]
    chain_length: int
    first_entry: NotRequired[Moment | None]
    last_entry: NotRequired[Moment | None]
    heads: NotRequired[int]
    break_at: NotRequired[int]
    error: NotRequired[str]


class HeadItem(TypedDict):
    """A signed head, as it stands in ``audit.heads``."""

    version: int
    number: int
    node: str
    at: Moment
    size: int
    root: str
    last_id: int
    last_hash: str
    before: str
    key: str
    signature: str


class HeadList(TypedDict):
    """``GET /api/audit/heads``: newest first."""

    public_key: str
    heads: list[HeadItem]
    total: int


class InclusionProof(TypedDict):
    """``GET /api/audit/proof/{id}``: hashes in hexadecimal, the path from the leaf."""

    entry: AuditEntry
    canonical: str
    leaf_hash: str
    leaf_index: int
    tree_size: int
    path: list[str]
    head: HeadItem


class ConsistencyProof(TypedDict):
    """``GET /api/audit/consistency``."""

    first: int
    second: int
    path: list[str]
    head: HeadItem
