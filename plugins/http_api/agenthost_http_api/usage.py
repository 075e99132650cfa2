"""Usage: sums over the ledger, whole micro-dollars inside and dollars outside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agenthost import Answer, Call, RouteGroup, Row, timestamp, usage_table
from sqlalchemy import bindparam, func, select

from .shapes import UsageByModel, UsagePeriod, UsageReport, UsageSummary

routes = RouteGroup("http_api.usage")

HOUR = 3_600.0
PERIODS = {"hour": HOUR, "day": 24 * HOUR, "week": 168 * HOUR, "month": 720 * HOUR}
MICROS = 1_000_000

_rows = usage_table.c


def _sum(name: str) -> Any:
    return func.coalesce(func.sum(_rows[name]), 0).label(name)


_SUMS = (
    func.count().label("requests"),
    _sum("input_tokens"),
    _sum("output_tokens"),
    _sum("cost_micro_usd"),
)
_SINCE = select(
    *_SUMS,
    func.count(_rows.agent_id.distinct()).label("agents"),
    func.min(_rows.at).label("oldest"),
).where(_rows.at >= bindparam("since"))
_BY_MODEL = (
    select(_rows.provider, _rows.model, *_SUMS)
    .group_by(_rows.provider, _rows.model)
    .order_by(func.sum(_rows.cost_micro_usd).desc(), _rows.provider, _rows.model)
)


@routes.get(
    "/api/usage", scope="usage:read", cost=3, query=UsagePeriod, answer=UsageReport
)
async def report(call: Call, query: UsagePeriod) -> Answer:
    """Sum what all agents used in the period that ends now."""
    row = await _since(call, call.daemon.clock.time() - PERIODS[query.period])
    return {
        "period": query.period,
        "total_input_tokens": row["input_tokens"],
        "total_output_tokens": row["output_tokens"],
        "total_cost_usd": row["cost_micro_usd"] / MICROS,
        "request_count": row["requests"],
        "active_agents": row["agents"],
    }


@routes.get("/api/usage/summary", scope="usage:read", cost=3, answer=UsageSummary)
async def summary(call: Call) -> Answer:
    """Sum this day, in UTC, and show how the hourly tokens stand."""
    now = call.daemon.clock.time()
    midnight = datetime.fromtimestamp(now, UTC).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    today = await _since(call, midnight.timestamp())
    hour = await _since(call, now - HOUR)
    oldest = hour["oldest"]
    return {
        "today": {
            "input_tokens": today["input_tokens"],
            "output_tokens": today["output_tokens"],
            "cost_usd": today["cost_micro_usd"] / MICROS,
            "requests": today["requests"],
        },
        "quota": {
            "hourly_token_limit": (
                call.daemon.config.budget.default_max_llm_tokens_per_hour
            ),
            "hourly_tokens_used": hour["input_tokens"] + hour["output_tokens"],
            "hourly_reset_at": timestamp(now if oldest is None else oldest + HOUR),
        },
    }


@routes.get("/api/usage/by-model", scope="usage:read", cost=3, answer=UsageByModel)
async def by_model(call: Call) -> Answer:
    """Sum all that was ever used by model, the most expensive first."""
    rows = await call.daemon.store.read(_BY_MODEL)
    return {
        "models": [
            {
                "model": row["model"],
                "provider": row["provider"],
                "input_tokens": row["input_tokens"],
                "output_tokens": row["output_tokens"],
                "cost_usd": row["cost_micro_usd"] / MICROS,
                "request_count": row["requests"],
            }
            for row in rows
        ]
    }


async def _since(call: Call, since: float) -> Row:
    # A sum without GROUP BY always has its one row.
    return (await call.daemon.store.read(_SINCE, {"since": since}))[0]
