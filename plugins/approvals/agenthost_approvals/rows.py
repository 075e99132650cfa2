"""An approval, and how its row reads."""

from __future__ import annotations

import json
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from agenthost import JsonObject, Row
from agenthost_values.value_class import value_class

Remember = Literal["once", "session", "pattern"]
PENDING_PER_AGENT = 32
UNSETTLED = (
    "SELECT id, turn_id, agent_id, asked_by, state, deadline, behind, depth "
    "FROM approvals "
    "WHERE carried = 0 ORDER BY created_at, id"
)
OLD = "SELECT 1 FROM approvals WHERE carried = 1 AND answered_at < :before LIMIT 1"
"""Texts, since a start reads them and imports no SQLAlchemy."""


class State(StrEnum):
    """Where an approval stands; only PENDING ones can be answered."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@value_class
class Approval:
    """An approval as it stands; times are epoch seconds.

    ``shown`` is what a person saw, as JSON, and ``digest`` its SHA-256. ``asked_by``
    started the turn. ``carried`` says that its turn needs nothing of it any more.
    ``purse`` names what more may be spent of, "" for a question about a call; each
    turn that waits for that has a row ``behind`` the id of the question. A yes holds
    for what ``remember`` says beside its call, and ``pattern`` by argument.
    """

    id: str
    turn_id: str
    call_id: str
    agent_id: str
    session_id: str
    tool: str
    shown: JsonObject
    digest: str
    asked_by: str
    may_answer: str
    state: State
    created_at: float
    deadline: float
    answered_by: str | None
    answered_at: float | None
    reason: str | None
    values: JsonObject
    carried: bool
    purse: str = ""
    behind: str = ""
    depth: int = 0
    remember: Remember = "once"
    pattern: JsonObject = field(default_factory=dict)

    @property
    def expense(self) -> dict[str, Any] | None:
        """What is asked about money, None of a question about a call."""
        expense: dict[str, Any] | None = self.shown.get("expense")
        return expense

    @property
    def about(self) -> str:
        """What it is about, in a word or two."""
        return self.tool or "spending more"


def approval_of(row: Row | Any) -> Approval:
    """Read an approval from its row."""
    return Approval(
        id=row["id"],
        turn_id=row["turn_id"],
        call_id=row["call_id"],
        agent_id=row["agent_id"],
        session_id=row["session_id"],
        tool=row["tool"],
        shown=json.loads(row["shown"]),
        digest=row["digest"],
        asked_by=row["asked_by"],
        may_answer=row["may_answer"],
        state=State(row["state"]),
        created_at=row["created_at"],
        deadline=row["deadline"],
        answered_by=row["answered_by"],
        answered_at=row["answered_at"],
        reason=row["reason"],
        values=json.loads(row["answers"]) if row["answers"] else {},
        carried=bool(row["carried"]),
        purse=row["purse"],
        behind=row["behind"],
        depth=row["depth"],
        remember=row["remember"] or "once",
        pattern=json.loads(row["pattern"]) if row["pattern"] else {},
    )
