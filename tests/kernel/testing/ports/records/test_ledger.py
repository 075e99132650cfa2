"""The contract of the ledger holds for one in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from agenthost import ModelTotal, PeriodTotal, Slot, Spent, Total
from agenthost.testing import LedgerContract
from agenthost.testing.ports.memory_records.ledger import MemoryLedger
from agenthost.testing.ports.memory_records.rows import Rows

from ..finding import names_in, names_of
from .broken import InMemory, Lazy, finds_broken


class TestALedgerInMemory(InMemory, LedgerContract):
    """It keeps every promise."""


class Rounds(MemoryLedger):
    async def of_agent(self, agent_id: str) -> Total:
        total = await super().of_agent(agent_id)
        return replace(total, cost_micro_usd=int(float(total.cost_micro_usd)))


class ForgetsAtTheEnd(MemoryLedger):
    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        rows.spent.clear()


class SumsSessions(MemoryLedger):
    async def of_agent(self, agent_id: str) -> Total:
        spent = {each.session_id: each for each in self._rows.spent.values()}
        self._rows.spent = dict(enumerate(spent.values()))
        return await super().of_agent(agent_id)


class SumsTurnsOfAll(MemoryLedger):
    async def of_turn(self, agent_id: str, turn_id: str) -> Total:
        for number, each in self._rows.spent.items():
            self._rows.spent[number] = replace(each, agent_id=agent_id)
        return await super().of_turn(agent_id, turn_id)


class BooksWhenAwaited(MemoryLedger):
    def book(self, spent: Spent) -> Any:
        return Lazy(super().book, spent)


class BooksTwice(MemoryLedger):
    def book(self, spent: Spent) -> asyncio.Future[None]:
        super().book(spent)
        return super().book(spent)


class SlotsOfAMinute(MemoryLedger):
    async def since(
        self, moment: float, width: float, agent: str = ""
    ) -> Sequence[Slot]:
        return await super().since(moment, 60, agent)


class SlotsOfAll(MemoryLedger):
    async def since(
        self, moment: float, width: float, agent: str = ""
    ) -> Sequence[Slot]:
        return await super().since(moment, width)


class SlotsFromTheFirst(MemoryLedger):
    async def since(
        self, moment: float, width: float, agent: str = ""
    ) -> Sequence[Slot]:
        return await super().since(0, width, agent)


class LeavesOutTheFirst(MemoryLedger):
    async def period(self, since: float) -> PeriodTotal:
        return await super().period(since + 0.5)


class CountsNobody(MemoryLedger):
    async def period(self, since: float) -> PeriodTotal:
        found = await super().period(since)
        return replace(found, agents=found.agents + (found.requests > 0))


class BeginsAtItsMoment(MemoryLedger):
    async def period(self, since: float) -> PeriodTotal:
        return replace(await super().period(since), oldest=since)


class CheapestFirst(MemoryLedger):
    async def by_model(self) -> Sequence[ModelTotal]:
        return [*reversed(await super().by_model())]


class OneProvider(MemoryLedger):
    async def by_model(self) -> Sequence[ModelTotal]:
        for number, each in self._rows.spent.items():
            self._rows.spent[number] = replace(each, provider="p")
        return await super().by_model()


HERE = TestALedgerInMemory()
BREACHES: tuple[tuple[type[MemoryLedger], Any], ...] = (
    (Rounds, HERE.test_an_agents_sum_is_of_all_its_calls),
    (ForgetsAtTheEnd, HERE.test_an_agents_sum_is_of_all_its_calls),
    (SumsSessions, HERE.test_an_agents_sum_is_of_all_its_calls),
    (SumsTurnsOfAll, HERE.test_a_turns_sum_is_of_its_agents_calls),
    (BooksWhenAwaited, HERE.test_rows_are_booked_awaited_or_not),
    (BooksTwice, HERE.test_rows_are_booked_awaited_or_not),
    (SlotsOfAMinute, HERE.test_slots_are_so_many_seconds_wide),
    (SlotsOfAll, HERE.test_slots_are_so_many_seconds_wide),
    (SlotsFromTheFirst, HERE.test_slots_are_so_many_seconds_wide),
    (LeavesOutTheFirst, HERE.test_a_period_is_from_its_first_moment_on),
    (CountsNobody, HERE.test_a_period_is_from_its_first_moment_on),
    (BeginsAtItsMoment, HERE.test_a_period_is_from_its_first_moment_on),
    (CheapestFirst, HERE.test_models_are_summed_the_most_expensive_first),
    (OneProvider, HERE.test_models_are_summed_the_most_expensive_first),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_a_broken_ledger_is_found(broken: type[MemoryLedger], test: Any) -> None:
    await finds_broken(broken, test)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(LedgerContract)
