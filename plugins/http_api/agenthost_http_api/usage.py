"""Usage: sums over the ledger, whole micro-dollars inside and dollars outside."""

from __future__ import annotations

from datetime import UTC, datetime

from agenthost import Answer, Call, RouteGroup, timestamp

from .system_shapes import UsageByModel, UsagePeriod, UsageReport, UsageSummary

routes = RouteGroup("usage")

HOUR = 3_600.0
PERIODS = {"hour": HOUR, "day": 24 * HOUR, "week": 168 * HOUR, "month": 720 * HOUR}
MICROS = 1_000_000


@routes.get(
    "/api/usage", scope="usage:read", cost=3, query=UsagePeriod, answer=UsageReport
)
async def report(call: Call, query: UsagePeriod) -> Answer:
    """Sum what all agents used in the period that ends now."""
    since = call.host.clock.time() - PERIODS[query.period]
    total = await call.host.usage.period(since)
    return {
        "period": query.period,
        "total_input_tokens": total.input_tokens,
        "total_output_tokens": total.output_tokens,
        "total_cost_usd": total.cost_micro_usd / MICROS,
        "request_count": total.requests,
        "active_agents": total.agents,
    }


@routes.get("/api/usage/summary", scope="usage:read", cost=3, answer=UsageSummary)
async def summary(call: Call) -> Answer:
    """Sum this day, in UTC, and show how the hourly tokens stand."""
    now = call.host.clock.time()
    midnight = datetime.fromtimestamp(now, UTC).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    today = await call.host.usage.period(midnight.timestamp())
    hour = await call.host.usage.period(now - HOUR)
    return {
        "today": {
            "input_tokens": today.input_tokens,
            "output_tokens": today.output_tokens,
            "cost_usd": today.cost_micro_usd / MICROS,
            "requests": today.requests,
        },
        "quota": {
            "hourly_token_limit": call.host.models.hourly_tokens,
            "hourly_tokens_used": hour.input_tokens + hour.output_tokens,
            "hourly_reset_at": timestamp(
                now if hour.oldest is None else hour.oldest + HOUR
            ),
        },
    }


@routes.get("/api/usage/by-model", scope="usage:read", cost=3, answer=UsageByModel)
async def by_model(call: Call) -> Answer:
    """Sum all that was ever used by model, the most expensive first."""
    return {
        "models": [
            {
                "model": total.model,
                "provider": total.provider,
                "input_tokens": total.input_tokens,
                "output_tokens": total.output_tokens,
                "cost_usd": total.cost_micro_usd / MICROS,
                "request_count": total.requests,
            }
            for total in await call.host.usage.by_model()
        ]
    }
