"""The usage ledger: one row a provider call, in integer micro-USD."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    cast,
    func,
    insert,
    or_,
    select,
)

from .chat import Usage
from .ports import Row, Store
from .tables import usage as ledger

log = logging.getLogger(__name__)
_INSERT = insert(ledger)
_SUMS: tuple[ColumnElement[Any], ...] = (
    cast(ledger.c.at / bindparam("width"), Integer).label("slot"),
    func.sum(ledger.c.input_tokens + ledger.c.output_tokens).label("tokens"),
    func.sum(ledger.c.cost_micro_usd).label("cost_micro_usd"),
)
_SLOTS = (
    select(*_SUMS)
    .where(
        ledger.c.at > bindparam("since"),
        or_(bindparam("agent") == "", ledger.c.agent_id == bindparam("agent")),
    )
    .group_by(_SUMS[0])
    .order_by(_SUMS[0])
)

_OF_AGENT = select(
    func.count().label("requests"),
    func.coalesce(func.sum(ledger.c.input_tokens), 0).label("input_tokens"),
    func.coalesce(func.sum(ledger.c.output_tokens), 0).label("output_tokens"),
    func.coalesce(func.sum(ledger.c.cost_micro_usd), 0).label("cost_micro_usd"),
).where(ledger.c.agent_id == bindparam("agent"))


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
    """What was used, and by whom."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of_agent(self, agent_id: str) -> Total:
        """Sum everything an agent has used."""
        row = await self._store.first(_OF_AGENT, {"agent": agent_id})
        return Total(*row) if row else Total(0, 0, 0, 0)

    def book(self, spent: Spent) -> asyncio.Future[None]:
        """Add a row of its own; it starts at once, awaited or not."""
        booked = self._store.write(partial(record, spent=spent))
        booked.add_done_callback(_seen)
        return booked

    async def since(self, moment: float, width: float, agent: str = "") -> list[Row]:
        """Sum ``tokens`` and ``cost_micro_usd`` by ``slot`` of ``width`` seconds."""
        return await self._store.read(
            _SLOTS, {"since": moment, "width": width, "agent": agent}
        )


def _seen(booked: asyncio.Future[None]) -> None:
    if not booked.cancelled() and booked.exception() is not None:
        log.error("the usage ledger missed a row: %s", booked.exception())
