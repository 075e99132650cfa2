"""``/api/audit``: read the trail, verify it, and prove what it says."""

from __future__ import annotations

import asyncio
from typing import Any

from agenthost import Answer, Call, InvalidInput, RouteGroup, timestamp
from pydantic import AwareDatetime

from .heads import newest
from .proofs import consistency_of, entry_json, proof_of
from .shapes import (
    HIGHEST,
    AuditList,
    ConsistencyProof,
    ConsistencyQuery,
    HeadList,
    HeadsQuery,
    InclusionProof,
    RecentQuery,
    Verification,
)
from .system import trail_of
from .trail import HEADS_FILE, LAST
from .verifying import verify

SCOPE = "audit:inspect"
MOST = 500
WINDOW = 100_000
"""Entries that one request looks through."""
_RECENT = (
    "SELECT id, timestamp, event_type, agent_id, actor, details, hash, prev_hash, "
    "node, number FROM audit_entries WHERE id < :before AND id >= :floor "
    "AND (:kind = '' OR event_type = :kind) AND (:agent = '' OR agent_id = :agent) "
    "AND (:actor = '' OR actor = :actor) "
    "AND timestamp >= :since AND timestamp <= :until ORDER BY id DESC LIMIT :limit"
)

routes = RouteGroup("security.audit")


@routes.get("/api/audit/recent", scope=SCOPE, query=RecentQuery, answer=AuditList)
async def recent(call: Call, query: RecentQuery) -> Answer:
    """Show the newest entries; ``next_before`` is where the next page begins."""
    store, limit = call.host.store, min(query.limit, MOST)
    last = await store.first(LAST)
    total = last["id"] if last else 0
    before = min(query.before or HIGHEST, total + 1)
    floor = max(1, before - WINDOW)
    wanted: dict[str, Any] = {
        "before": before,
        "floor": floor,
        "kind": query.event_type or "",
        "agent": query.agent_id or "",
        "actor": query.actor or "",
        "since": _moment(query.since, ""),
        "until": _moment(query.until, "~"),
        "limit": limit,
    }
    rows = await store.read(_RECENT, wanted)
    lowest = rows[-1]["id"] if len(rows) == limit else floor
    return {
        "entries": [entry_json(row) for row in rows],
        "total": total,
        "next_before": lowest if lowest > 1 else None,
    }


@routes.get("/api/audit/verify", scope=SCOPE, cost=30, answer=Verification)
async def verify_trail(call: Call) -> Answer:
    """Walk the whole trail: each column, each link, the trees and the signatures."""
    return await verify(trail_of(call.host))


@routes.get("/api/audit/proof/<entry_id>", scope=SCOPE, answer=InclusionProof)
async def prove_entry(call: Call, entry_id: int) -> Answer:
    """Prove that an entry is under a signed head, as RFC 6962 has it."""
    if not 0 < entry_id <= HIGHEST:
        raise InvalidInput("id", "must be the id of an entry")
    return await proof_of(trail_of(call.host), entry_id)


@routes.get(
    "/api/audit/consistency",
    scope=SCOPE,
    query=ConsistencyQuery,
    answer=ConsistencyProof,
)
async def prove_growth(call: Call, query: ConsistencyQuery) -> Answer:
    """Prove that an earlier tree is the beginning of the one that is signed now."""
    return await consistency_of(trail_of(call.host), query.first)


@routes.get("/api/audit/heads", scope=SCOPE, query=HeadsQuery, answer=HeadList)
async def heads(call: Call, query: HeadsQuery) -> Answer:
    """Show the newest signed heads, to be kept elsewhere, and the key they tell of."""
    trail = trail_of(call.host)
    path, limit = call.host.data_dir / HEADS_FILE, min(query.limit, MOST)
    listed = await asyncio.to_thread(newest, path, limit)
    return {
        "public_key": (await trail.key()).public,
        "heads": listed,
        "total": listed[0]["number"] if listed else 0,
    }


def _moment(asked: AwareDatetime | None, otherwise: str) -> str:
    try:
        return timestamp(asked.timestamp()) if asked else otherwise
    except (OverflowError, ValueError):
        raise InvalidInput("since, until", "must be a time of these ages") from None
