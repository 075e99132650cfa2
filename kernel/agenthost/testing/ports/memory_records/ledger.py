"""What was used, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from ....ports.usage import ModelTotal, PeriodTotal, Slot, Spent, Total
from .rows import Rows


class MemoryLedger:
    """One row a provider call."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def book(self, spent: Spent) -> asyncio.Future[None]:
        """Add a row of its own; it starts at once, awaited or not."""
        return self._rows.write(self._rows.book, spent)

    async def of_agent(self, agent_id: str) -> Total:
        """Sum everything an agent has used."""
        spent = self._rows.spent.values()
        return Total(*_sums(each for each in spent if each.agent_id == agent_id))

    async def of_turn(self, agent_id: str, turn_id: str) -> Total:
        """Sum what the model calls of an agent's turn took."""
        turn = agent_id, turn_id
        spent = self._rows.spent.values()
        found = (each for each in spent if (each.agent_id, each.turn_id) == turn)
        return Total(*_sums(found))

    async def since(
        self, moment: float, width: float, agent: str = ""
    ) -> Sequence[Slot]:
        """Sum by slots of ``width`` seconds, of one agent when it is named."""
        slots: dict[int, list[Spent]] = {}
        for each in self._rows.spent.values():
            if each.at > moment and agent in {"", each.agent_id}:
                slots.setdefault(int(each.at / width), []).append(each)
        sums = {number: _sums(spent) for number, spent in sorted(slots.items())}
        return [
            Slot(number, read + said, cost)
            for number, (_, read, said, cost) in sums.items()
        ]

    async def period(self, since: float) -> PeriodTotal:
        """Sum everything from a moment on; calls for no agent count no agent."""
        found = [each for each in self._rows.spent.values() if each.at >= since]
        agents = {each.agent_id for each in found} - {""}
        oldest = min((each.at for each in found), default=None)
        return PeriodTotal(*_sums(found), len(agents), oldest)

    async def by_model(self) -> Sequence[ModelTotal]:
        """Sum all that was ever used by model, the most expensive first."""
        models: dict[tuple[str, str], list[Spent]] = {}
        for each in self._rows.spent.values():
            models.setdefault((each.provider, each.model), []).append(each)
        totals = [ModelTotal(*_sums(spent), *name) for name, spent in models.items()]
        return sorted(totals, key=lambda each: -each.cost_micro_usd)


def _sums(spent: Iterable[Spent]) -> tuple[int, int, int, int]:
    """Give requests, tokens read, tokens said and cost."""
    found = list(spent)
    return (
        len(found),
        sum(each.usage.input_tokens for each in found),
        sum(each.usage.output_tokens for each in found),
        sum(each.cost_micro_usd for each in found),
    )
