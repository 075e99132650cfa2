"""The REST surface of occasions: what was due, what came of it, and an end to it."""

from __future__ import annotations

from agenthost import Answer, Call, RouteGroup, timestamp

from ..orchestration import orchestration_of
from .background import Background
from .errands import Occasion, OccasionState
from .shapes import ListQuery, OccasionDetail, OccasionItem, OccasionList

routes = RouteGroup("occasions")
MILLION = 1_000_000


@routes.get(
    "/api/occasions", scope="occasions:read", query=ListQuery, answer=OccasionList
)
async def list_occasions(call: Call, query: ListQuery) -> Answer:
    """List occasions, newest first."""
    found = await _background(call).list(
        query.source,
        query.source_id,
        OccasionState(query.state) if query.state else None,
        limit=query.limit,
        after=query.after,
    )
    return {"occasions": [item_of(each) for each in found], "total": len(found)}


@routes.get(
    "/api/occasions/<occasion_id>", scope="occasions:read", answer=OccasionDetail
)
async def get_occasion(call: Call, occasion_id: str) -> Answer:
    """Show an occasion with what it was made from and what came of it."""
    return _detail(await _background(call).occasion(occasion_id))


@routes.post(
    "/api/occasions/<occasion_id>/cancel",
    scope="occasions:write",
    answer=OccasionDetail,
)
async def cancel_occasion(call: Call, occasion_id: str) -> Answer:
    """End an occasion that has not ended; what is being done is stopped."""
    return _detail(await _background(call).cancel(call.context, occasion_id))


def _background(call: Call) -> Background:
    return orchestration_of(call.host).background


def item_of(each: Occasion) -> OccasionItem:
    """Show an occasion as lists do."""
    return {
        "id": each.id,
        "source": each.source,
        "source_id": each.source_id,
        "key": each.key,
        "at": timestamp(each.at),
        "state": each.state.value,
        "detail": each.detail,
        "code": each.code,
        "agent_id": each.agent_id,
        "turn_id": each.turn_id,
        "run_id": each.run_id,
        "cost_usd": each.cost_micro_usd / MILLION,
        "delivered": each.delivered,
        "created_at": timestamp(each.created_at),
        "ended_at": None if each.ended_at is None else timestamp(each.ended_at),
        "owner": each.owner,
    }


def _detail(each: Occasion) -> OccasionDetail:
    return {
        **item_of(each),
        "payload": dict(each.payload),
        "text": each.text,
        "labels": sorted(each.labels),
    }
