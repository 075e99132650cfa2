"""The usage ledger: one row a provider call, in integer micro-USD."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agenthost import ModelTotal, PeriodTotal, Slot, Spent, Store, Total
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    Subquery,
    Table,
    bindparam,
    cast,
    func,
    insert,
    literal_column,
    or_,
    select,
    union_all,
)

from .rollup import DAY, usage_days
from .tables import usage as ledger

Condition = ColumnElement[bool]

log = logging.getLogger(__name__)
_INSERT = insert(ledger)
# The order of the columns is that of the fields of Total and of its two children.
_SUMMED = ("requests", "input_tokens", "output_tokens", "cost_micro_usd")


def _columns(
    table: Table, at: ColumnElement[Any], requests: ColumnElement[Any]
) -> Mapping[str, ColumnElement[Any]]:
    """Name what is grouped and summed of a table, the same for both."""
    return {
        **{name: table.c[name] for name in ("agent_id", "provider", "model")},
        "at": at,
        "slot": cast(at / bindparam("width"), Integer),
        "requests": requests,
        **{name: table.c[name] for name in _SUMMED[1:]},
    }


_CALLS = _columns(ledger, ledger.c.at, literal_column("1"))
_DAYS = _columns(usage_days, usage_days.c.first_at, usage_days.c.requests)


def _spent(
    by: Sequence[str] = (),
    calls: Sequence[Condition] = (),
    days: Sequence[Condition] = (),
) -> Subquery:
    """The sums of the ledger, and those of the days that left it, by some columns.

    Each is summed on its own first: SQLite would sort all rows of both together.
    """
    sums = [_sums(_CALLS, by, calls), _sums(_DAYS, by, days)]
    return union_all(*sums).subquery("spent")


def _sums(
    columns: Mapping[str, ColumnElement[Any]],
    by: Sequence[str],
    conditions: Sequence[Condition],
) -> Select[Any]:
    keys = [columns[name].label(name) for name in by]
    values = [func.sum(columns[name]).label(name) for name in _SUMMED]
    oldest: ColumnElement[Any] = func.min(columns["at"]).label("at")
    return select(*keys, *values, oldest).where(*conditions).group_by(*keys)


def _totals(
    rows: FromClause, names: Sequence[str] = _SUMMED
) -> list[ColumnElement[Any]]:
    return [func.coalesce(func.sum(rows.c[name]), 0).label(name) for name in names]


# A day that was summed up counts whole when the moment lies in it.
_DAYS_SINCE = usage_days.c.day >= bindparam("day")


def _since(moment: float) -> dict[str, float]:
    return {"since": moment, "day": int(moment // DAY)}


def _slots() -> Select[Any]:
    agent: ColumnElement[Any] = bindparam("agent")
    rows = _spent(
        ("slot",),
        (
            ledger.c.at > bindparam("since"),
            or_(agent == "", ledger.c.agent_id == agent),
        ),
        (_DAYS_SINCE, or_(agent == "", usage_days.c.agent_id == agent)),
    )
    sums: list[ColumnElement[Any]] = [
        func.sum(rows.c.input_tokens + rows.c.output_tokens).label("tokens"),
        func.sum(rows.c.cost_micro_usd).label("cost_micro_usd"),
    ]
    return select(rows.c.slot, *sums).group_by(rows.c.slot).order_by(rows.c.slot)


def _of_agent() -> Select[Any]:
    agent: ColumnElement[Any] = bindparam("agent")
    rows = _spent((), (ledger.c.agent_id == agent,), (usage_days.c.agent_id == agent,))
    return select(*_totals(rows))


def _period() -> Select[Any]:
    rows = _spent(("agent_id",), (ledger.c.at >= bindparam("since"),), (_DAYS_SINCE,))
    return select(
        *_totals(rows),
        # A call that no agent asked for, such as a provider's test, has an empty id.
        func.count(func.nullif(rows.c.agent_id, "").distinct()).label("agents"),
        func.min(rows.c.at).label("oldest"),
    )


def _by_model() -> Select[Any]:
    rows = _spent(("provider", "model"))
    return (
        select(*_totals(rows), rows.c.provider, rows.c.model)
        .group_by(rows.c.provider, rows.c.model)
        .order_by(func.sum(rows.c.cost_micro_usd).desc(), rows.c.provider, rows.c.model)
    )


_SLOTS, _OF_AGENT, _PERIOD, _BY_MODEL = _slots(), _of_agent(), _period(), _by_model()
_OF_TURN = select(func.count(), *_totals(ledger, _SUMMED[1:])).where(
    ledger.c.agent_id == bindparam("agent"), ledger.c.turn_id == bindparam("turn")
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
            "principal": spent.principal,
            "person": spent.person,
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
        """Sum everything an agent has ever used."""
        (row,) = await self._store.read(_OF_AGENT, {"agent": agent_id})
        return Total(*row)

    async def of_turn(self, agent_id: str, turn_id: str) -> Total:
        """Sum what the model calls of an agent's turn took in the last 90 days."""
        turn = {"agent": agent_id, "turn": turn_id}
        (row,) = await self._store.read(_OF_TURN, turn)
        return Total(*row)

    async def since(self, moment: float, width: float, agent: str = "") -> list[Slot]:
        """Sum by slots of ``width`` seconds, of one agent when it is named."""
        rows = await self._store.read(
            _SLOTS, {**_since(moment), "width": width, "agent": agent}
        )
        return [Slot(*row) for row in rows]

    async def period(self, since: float) -> PeriodTotal:
        """Sum everything from a moment on."""
        (row,) = await self._store.read(_PERIOD, _since(since))
        return PeriodTotal(*row)

    async def by_model(self) -> list[ModelTotal]:
        """Sum all that was ever used by model, the most expensive first."""
        return [ModelTotal(*row) for row in await self._store.read(_BY_MODEL)]


def _seen(booked: asyncio.Future[None]) -> None:
    if not booked.cancelled() and booked.exception() is not None:
        log.error("the usage ledger missed a row: %s", booked.exception())
