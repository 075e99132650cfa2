"""The usage ledger: one row a provider call, in integer micro-USD."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from agenthost import ModelTotal, PeriodTotal, Slot, Spent, Store, Total
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

from .tables import usage as ledger

log = logging.getLogger(__name__)
_INSERT = insert(ledger)
_SLOT: tuple[ColumnElement[Any], ...] = (
    cast(ledger.c.at / bindparam("width"), Integer).label("slot"),
    func.sum(ledger.c.input_tokens + ledger.c.output_tokens).label("tokens"),
    func.sum(ledger.c.cost_micro_usd).label("cost_micro_usd"),
)
_SLOTS = (
    select(*_SLOT)
    .where(
        ledger.c.at > bindparam("since"),
        or_(bindparam("agent") == "", ledger.c.agent_id == bindparam("agent")),
    )
    .group_by(_SLOT[0])
    .order_by(_SLOT[0])
)
# The order of the columns is that of the fields of Total and of its two children.
_TOTAL: tuple[ColumnElement[Any], ...] = (
    func.count().label("requests"),
    func.coalesce(func.sum(ledger.c.input_tokens), 0).label("input_tokens"),
    func.coalesce(func.sum(ledger.c.output_tokens), 0).label("output_tokens"),
    func.coalesce(func.sum(ledger.c.cost_micro_usd), 0).label("cost_micro_usd"),
)
_OF_AGENT = select(*_TOTAL).where(ledger.c.agent_id == bindparam("agent"))
_OF_TURN = _OF_AGENT.where(ledger.c.turn_id == bindparam("turn"))
_PERIOD = select(
    *_TOTAL,
    # A call that no agent asked for, such as a provider's test, has an empty id.
    func.count(func.nullif(ledger.c.agent_id, "").distinct()).label("agents"),
    func.min(ledger.c.at).label("oldest"),
).where(ledger.c.at >= bindparam("since"))
_BY_MODEL = (
    select(*_TOTAL, ledger.c.provider, ledger.c.model)
    .group_by(ledger.c.provider, ledger.c.model)
    .order_by(
        func.sum(ledger.c.cost_micro_usd).desc(), ledger.c.provider, ledger.c.model
    )
)


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


class UsageLedger:
    """What was used, and by whom."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def book(self, spent: Spent) -> asyncio.Future[None]:
        """Add a row of its own; it starts at once, awaited or not."""
        booked = self._store.write(partial(record, spent=spent))
        booked.add_done_callback(_seen)
        return booked

    async def of_agent(self, agent_id: str) -> Total:
        """Sum everything an agent has used."""
        (row,) = await self._store.read(_OF_AGENT, {"agent": agent_id})
        return Total(*row)

    async def of_turn(self, agent_id: str, turn_id: str) -> Total:
        """Sum what the model calls of an agent's turn took."""
        turn = {"agent": agent_id, "turn": turn_id}
        (row,) = await self._store.read(_OF_TURN, turn)
        return Total(*row)

    async def since(self, moment: float, width: float, agent: str = "") -> list[Slot]:
        """Sum by slots of ``width`` seconds, of one agent when it is named."""
        rows = await self._store.read(
            _SLOTS, {"since": moment, "width": width, "agent": agent}
        )
        return [Slot(*row) for row in rows]

    async def period(self, since: float) -> PeriodTotal:
        """Sum everything from a moment on."""
        (row,) = await self._store.read(_PERIOD, {"since": since})
        return PeriodTotal(*row)

    async def by_model(self) -> list[ModelTotal]:
        """Sum all that was ever used by model, the most expensive first."""
        return [ModelTotal(*row) for row in await self._store.read(_BY_MODEL)]


def _seen(booked: asyncio.Future[None]) -> None:
    if not booked.cancelled() and booked.exception() is not None:
        log.error("the usage ledger missed a row: %s", booked.exception())
