"""How an occasion's row reads, and what a start asks of the rows."""

from __future__ import annotations

import json
from typing import Any

from agenthost import JsonObject, Row
from agenthost_values.value_class import value_class

from .errands import Creator, Delivery, Errand, Occasion, OccasionState

ANY_OPEN = "SELECT 1 FROM occasions WHERE ended_at IS NULL LIMIT 1"
"""A text, since a start reads it and imports no SQLAlchemy."""


@value_class
class Terms:
    """What is kept of an errand once it has begun: its source may go meanwhile.

    Args:
        creator: With whose rights it was begun.
        delivery: Where its result goes.
        allowance: What its source may spend in a day, in micro-USD.
        depth: How many events led to it.
        reserved: What a workflow's run may spend, which is held for it.
        session_id: The session that ends with it, "" for none.
        title: What a person calls its source.
    """

    creator: Creator
    delivery: Delivery
    allowance: int = 0
    depth: int = 0
    reserved: int = 0
    session_id: str = ""
    title: str = ""


@value_class
class Kept:
    """An occasion with what only this folder knows of it."""

    occasion: Occasion
    terms: Terms | None
    day: int | None
    strike: int


def terms_of(errand: Errand, reserved: int = 0, session_id: str = "") -> Terms:
    """Keep what is needed of an errand."""
    return Terms(
        errand.creator,
        errand.delivery,
        errand.allowance_micro_usd,
        errand.depth,
        reserved,
        session_id,
        errand.title,
    )


def terms_text(terms: Terms) -> str:
    """Write terms as JSON."""
    who, where = terms.creator, terms.delivery
    told: JsonObject = {
        "creator": [who.kind, who.name, who.person, who.id],
        "delivery": [where.kind, where.target],
        "allowance": terms.allowance,
        "depth": terms.depth,
        "reserved": terms.reserved,
        "session_id": terms.session_id,
        "title": terms.title,
    }
    return json.dumps(told)


def _terms(text: str) -> Terms | None:
    if not text:
        return None
    told: dict[str, Any] = json.loads(text)
    who, where = Creator(*told.pop("creator")), Delivery(*told.pop("delivery"))
    return Terms(who, where, **told)


def row_of(occasion: Occasion) -> dict[str, Any]:
    """Write an occasion as its row."""
    ended = occasion.ended_at
    return {
        "id": occasion.id,
        "source": occasion.source,
        "source_id": occasion.source_id,
        "key": occasion.key,
        "payload": json.dumps(dict(occasion.payload)),
        "at": occasion.at,
        "state": occasion.state.value,
        "detail": occasion.detail,
        "code": occasion.code,
        "agent_id": occasion.agent_id,
        "turn_id": occasion.turn_id,
        "run_id": occasion.run_id,
        "text": occasion.text,
        "cost_micro_usd": occasion.cost_micro_usd,
        "delivered": occasion.delivered,
        "created_at": occasion.created_at,
        "ended_at": ended,
        "owner": occasion.owner,
        "labels": json.dumps(sorted(occasion.labels)),
        "terms": "",
        "day": None,
        "strike": 0,
    }


def occasion_of(row: Row | Any) -> Occasion:
    """Read an occasion from its row."""
    return Occasion(
        id=row["id"],
        source=row["source"],
        source_id=row["source_id"],
        key=row["key"],
        payload=json.loads(row["payload"]),
        at=row["at"],
        state=OccasionState(row["state"]),
        detail=row["detail"],
        code=row["code"],
        turn_id=row["turn_id"],
        run_id=row["run_id"],
        text=row["text"],
        cost_micro_usd=row["cost_micro_usd"],
        delivered=row["delivered"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        owner=row["owner"],
        labels=frozenset(json.loads(row["labels"])),
        agent_id=row["agent_id"],
    )


def kept_of(row: Row | Any) -> Kept:
    """Read an occasion with what only this folder knows of it."""
    return Kept(occasion_of(row), _terms(row["terms"]), row["day"], row["strike"])
