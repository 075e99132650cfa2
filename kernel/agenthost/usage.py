"""The usage ledger: one row a provider call, in integer micro-USD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, bindparam, func, insert, select

from .chat import Usage
from .clock import Clock
from .config_model import Config
from .context import AgentView
from .errors import QuotaExceeded
from .ports import Store
from .providers import LongContext, ModelFacts
from .tables import usage as ledger

HOUR = 3_600.0
_INSERT = insert(ledger)
_TOKENS_SINCE = select(
    func.coalesce(func.sum(ledger.c.input_tokens + ledger.c.output_tokens), 0).label(
        "tokens"
    )
).where(ledger.c.agent_id == bindparam("agent"), ledger.c.at > bindparam("since"))

_OF_AGENT = select(
    func.count().label("requests"),
    func.coalesce(func.sum(ledger.c.input_tokens), 0).label("input_tokens"),
    func.coalesce(func.sum(ledger.c.output_tokens), 0).label("output_tokens"),
    func.coalesce(func.sum(ledger.c.cost_micro_usd), 0).label("cost_micro_usd"),
).where(ledger.c.agent_id == bindparam("agent"))


def price(model: ModelFacts, usage: Usage) -> int:
    """Price a call in micro-USD: the provider's own figure when it gave one.

    A dollar per million tokens is a micro-dollar per token, so the catalogue's figures
    multiply directly; the exact sum is rounded up once. Above its threshold, a model's
    long-context rates hold for the whole call.
    """
    if usage.cost_micro_usd is not None:
        return usage.cost_micro_usd
    rates: ModelFacts | LongContext = model
    long = model.long_context
    if long is not None and usage.input_tokens > long.above_input_tokens:
        rates = long
    known = usage.cached_tokens + usage.cache_write_tokens
    fresh = max(usage.input_tokens - known, 0)
    cost = (
        fresh * _exact(rates.input_cost_per_1m)
        + usage.cached_tokens * _rate(rates.cached_input_cost_per_1m, rates)
        + usage.cache_write_tokens * _rate(rates.cache_write_cost_per_1m, rates)
        + usage.output_tokens * _exact(rates.output_cost_per_1m)
    )
    return math.ceil(cost)


def _rate(own: float | None, rates: ModelFacts | LongContext) -> Decimal:
    return _exact(rates.input_cost_per_1m if own is None else own)


def _exact(rate: float) -> Decimal:
    """Take the figure as it is written, not its nearest binary fraction."""
    return Decimal(str(rate))


@dataclass(frozen=True, slots=True)
class Spent:
    """What one provider call took."""

    at: float
    agent_id: str
    session_id: str
    turn_id: str
    provider: str
    model: str
    usage: Usage
    cost_micro_usd: int


def record(connection: Connection, spent: Spent) -> None:
    """Add a row to the ledger."""
    connection.execute(
        _INSERT,
        {
            "at": spent.at,
            "agent_id": spent.agent_id,
            "session_id": spent.session_id,
            "turn_id": spent.turn_id,
            "provider": spent.provider,
            "model": spent.model,
            "input_tokens": spent.usage.input_tokens,
            "output_tokens": spent.usage.output_tokens,
            "cached_tokens": spent.usage.cached_tokens,
            "cache_write_tokens": spent.usage.cache_write_tokens,
            "reasoning_tokens": spent.usage.reasoning_tokens,
            "cost_micro_usd": spent.cost_micro_usd,
        },
    )


@dataclass(frozen=True, slots=True)
class Total:
    """A sum over the ledger."""

    requests: int
    input_tokens: int
    output_tokens: int
    cost_micro_usd: int


class UsageLedger:
    """Reads of the ledger, and the quota that stands on it."""

    def __init__(self, store: Store, clock: Clock, config: Config) -> None:
        self._store = store
        self._clock = clock
        self._default_hourly = config.budget.default_max_llm_tokens_per_hour

    async def of_agent(self, agent_id: str) -> Total:
        """Sum everything an agent has used."""
        row = await self._store.first(_OF_AGENT, {"agent": agent_id})
        return Total(*row) if row else Total(0, 0, 0, 0)

    async def tokens_last_hour(self, agent_id: str) -> int:
        """Sum an agent's tokens over the rolling hour."""
        row = await self._store.first(
            _TOKENS_SINCE, {"agent": agent_id, "since": self._clock.time() - HOUR}
        )
        return int(row["tokens"]) if row else 0

    async def check_quota(self, agent: AgentView) -> None:
        """Refuse a model call when the agent's hourly tokens are used up.

        Raises:
            QuotaExceeded: Naming the limit and what was used.
        """
        limit = agent.manifest.resources.max_llm_tokens_per_hour or self._default_hourly
        if not limit:
            return
        used = await self.tokens_last_hour(agent.id)
        if used >= limit:
            raise QuotaExceeded(
                f"agent {agent.name!r} used {used} of {limit} tokens in the last "
                "hour; wait, or raise resources.max_llm_tokens_per_hour"
            )
