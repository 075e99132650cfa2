"""What every backend of RECORDS promises of usage, as tests to inherit."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from agenthost_chat.chat import Usage

from ....ports.records import Records
from ....ports.usage import ModelTotal, PeriodTotal, Slot, Spent, Total
from ...clock import START
from .scenes import ADA, BOB, SPENT, OpenRecords, RecordsFixtures

HUGE = 2**60


def spent(seconds: float = 0.0, cost: int = 7, **facts: Any) -> Spent:
    """A call of ada's, so long after the start: 10 tokens read and 5 said."""
    return replace(SPENT, at=START + seconds, cost_micro_usd=cost, **facts)


async def book(records: Records, *calls: Spent) -> None:
    """Add rows."""
    for call in calls:
        await records.usage.book(call)


class LedgerContract(RecordsFixtures):
    """The ledger keeps every promise of the port.

    Example:
        ::

            class TestLedger(LedgerContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenRecords:
                    return partial(open_records, store, clock)
    """

    async def test_an_agents_sum_is_of_all_its_calls(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """Exact however large, also for the next process; who used nothing has zero."""
        await book(
            records,
            spent(cost=HUGE),
            spent(9.0, 1, usage=Usage(HUGE, 1, HUGE), session_id="gone", model="other"),
            spent(agent_id=BOB.id),
        )
        found = opened().usage
        assert await found.of_agent(ADA.id) == Total(2, HUGE + 10, 6, HUGE + 1)
        assert await found.of_agent(BOB.id) == Total(1, 10, 5, 7)
        assert await found.of_agent("nobody") == Total()

    async def test_a_turns_sum_is_of_its_agents_calls(self, records: Records) -> None:
        """Another agent's turn of the same name is another."""
        await book(
            records,
            *(spent(), spent(1), spent(turn_id="u")),
            spent(agent_id=BOB.id, cost=100),
        )
        assert await records.usage.of_turn(ADA.id, "t") == Total(2, 20, 10, 14)
        assert await records.usage.of_turn(ADA.id, "nothing") == Total()

    async def test_rows_are_booked_awaited_or_not(self, records: Records) -> None:
        """Each begins at once; none is lost or counted twice."""
        booked = [records.usage.book(spent(number)) for number in range(100)]
        await booked[-1]
        assert (await records.usage.of_agent(ADA.id)).requests == 100
        await asyncio.gather(*booked)
        assert (await records.usage.of_agent(ADA.id)).requests == 100

    async def test_slots_are_so_many_seconds_wide(self, records: Records) -> None:
        """Tokens are those read and said; what was before the moment is left out."""
        await book(
            records,
            *(spent(-1, 100), spent(1), spent(59), spent(61, 9)),
            spent(200, 3, agent_id=BOB.id),
        )
        first = int(START // 60)
        hers = [Slot(first, 30, 14), Slot(first + 1, 15, 9)]
        his = [Slot(first + 3, 15, 3)]
        assert [*await records.usage.since(START, 60)] == hers + his
        assert [*await records.usage.since(START, 60, ADA.id)] == hers
        assert [*await records.usage.since(START, 60, BOB.id)] == his
        assert [*await records.usage.since(START + 300, 60)] == []
        assert [*await records.usage.since(START, 600)] == [
            Slot(int(START // 600), 60, 26)
        ]

    async def test_a_period_is_from_its_first_moment_on(self, records: Records) -> None:
        """Calls for no agent are summed, and count no agent."""
        await book(
            records,
            *(spent(-1, 100), spent(0), spent(5), spent(6, agent_id=BOB.id)),
            spent(7, agent_id=""),
        )
        assert await records.usage.period(START) == PeriodTotal(
            4, 40, 20, 28, agents=2, oldest=START
        )
        assert await records.usage.period(START + 100) == PeriodTotal()

    async def test_models_are_summed_the_most_expensive_first(
        self, records: Records
    ) -> None:
        """The same name at two providers is two models."""
        await book(
            records,
            *(spent(cost=5), spent(cost=4, agent_id=BOB.id)),
            *(spent(cost=100, model="dear"), spent(cost=8, provider="q")),
        )
        assert [*await records.usage.by_model()] == [
            ModelTotal(1, 10, 5, 100, "p", "dear"),
            ModelTotal(2, 20, 10, 9, "p", "m"),
            ModelTotal(1, 10, 5, 8, "q", "m"),
        ]
