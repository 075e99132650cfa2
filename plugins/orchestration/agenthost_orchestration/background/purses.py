"""What sources may spend in a day: one pool for all that a source has done at once.

A day is one of UTC, and an occasion counts to the day on which it began: that is told
in a word ("anew at 00:00 UTC"), summed by equality, and nothing that was refused fits
again at an odd moment, as it would in a window that slides.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from agenthost import Expense, Host, Pool

from .errands import Occasion
from .rows import kept_of
from .settings import BackgroundSection

DAY = 86_400
NOTHING_MORE = Expense("", "", 0, 0, 0.0)
"""Nobody is asked: a run would ask for itself where nothing is said."""
MILLION = 1_000_000

Name = tuple[str, str, int]


def day_of(moment: float) -> int:
    """The UTC day of a moment, counted from 1970."""
    return int(moment // DAY)


@dataclass(slots=True)
class Spending:
    """What one occasion spends: out of its source's pool, and measured by its own.

    ``before`` is what it had taken when this process came to it.
    """

    purse: Purse
    before: int = 0
    meter: Pool = field(default_factory=Pool)

    @property
    def pools(self) -> tuple[Pool, ...]:
        """What its turns are limited by."""
        return (self.purse.pool, self.meter)

    @property
    def cost(self) -> int:
        """What it has taken by now, with all that it started."""
        return self.before + self.meter.used


@dataclass(slots=True)
class Purse:
    """What a source has for a day, while something of it is done or waits.

    ``reserved`` is what runs of workflows may still spend, by occasion: they outlive
    the process, so that all they may spend is held while they run.
    """

    name: Name
    pool: Pool
    members: dict[str, Spending] = field(default_factory=dict)
    reserved: dict[str, int] = field(default_factory=dict)
    freed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def left(self) -> int:
        """What is neither spent nor held."""
        return self.pool.limit - self.pool.used - self.pool.held

    @property
    def spent(self) -> bool:
        """Whether all is spent, whatever is given back."""
        return self.pool.used >= self.pool.limit

    @property
    def told(self) -> str:
        """What is spent, and what helps, for a person."""
        used, limit = self.pool.used / MILLION, self.pool.limit / MILLION
        return (
            f"has spent {used:g} of its {limit:g} USD of today; it has all of it "
            "again at 00:00 UTC, or raise its allowance"
        )

    def of_run(self, occasion_id: str) -> Pool:
        """Give a run what is held for it; a person may be asked for more."""
        limit, asks = self.reserved.get(occasion_id, 0), self.pool.asks
        if asks is None:
            return Pool(limit, asks=NOTHING_MORE)
        purpose = f"a run of the workflow for {asks.purpose}"
        purse = f"{asks.purse}/{occasion_id}"
        return Pool(limit, asks=replace(asks, purse=purse, purpose=purpose))

    async def wait_for_runs(self) -> None:
        """Wait while a run of this source holds what is left."""
        while self.left <= 0 and self.reserved and not self.spent:
            self.freed.clear()
            await self.freed.wait()

    def reserve(self, occasion_id: str) -> int:
        """Hold all that is left for a run; what was held for it before stays so."""
        if occasion_id not in self.reserved:
            self.hold(occasion_id, max(self.left, 0))
        return self.reserved[occasion_id]

    def hold(self, occasion_id: str, amount: int) -> None:
        """Hold so much for a run."""
        self.reserved[occasion_id] = amount
        self.pool.held += amount

    def settle(self, occasion_id: str, cost: int) -> None:
        """Give back what a run has not spent."""
        held = self.reserved.pop(occasion_id, 0)
        self.pool.held -= held
        self.pool.used += cost
        self.freed.set()


class Purses:
    """The purses of one daemon, each read from the rows when it is first needed."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._settings = host.settings(BackgroundSection)
        self._open: dict[Name, Purse] = {}
        # Read twice at once, two pools would be spent from, each as if it were alone.
        self._loading = asyncio.Lock()

    async def join(
        self, occasion: Occasion, day: int, allowance: int, title: str = ""
    ) -> Spending:
        """Let an occasion spend out of its source's purse; ``leave`` ends it.

        Args:
            occasion: Which.
            day: The day that it counts to.
            allowance: What the source may spend in it.
            title: What a person calls the source.
        """
        name = (occasion.source, occasion.source_id, day)
        async with self._loading:
            before = await self._taken(occasion)
            purse = self._open.get(name)
            if purse is None:
                purse = self._open[name] = await self._read(name, allowance)
            # Nothing is awaited from here on: who leaves closes an empty purse.
            purse.pool.limit = allowance
            purse.pool.asks = self._asks(name, allowance, title)
            if occasion.id not in purse.members:
                purse.members[occasion.id] = Spending(purse, before)
            return purse.members[occasion.id]

    def leave(self, occasion_id: str, spending: Spending) -> None:
        """End it: what it has taken stands in its row by now."""
        purse = spending.purse
        purse.members.pop(occasion_id, None)
        if not purse.members:
            self._open.pop(purse.name, None)
        purse.freed.set()

    def _asks(self, name: Name, allowance: int, title: str) -> Expense | None:
        """Say what a person may be asked; a source without an allowance has none."""
        if self._settings.over_allowance == "refuse" or allowance <= 0:
            return None
        source, source_id, day = name
        date = datetime.fromtimestamp(day * DAY, UTC).date().isoformat()
        called = repr(title) if title else source_id
        purpose = f"the {source} {called} on {date} (UTC)"
        seconds = self._settings.answer_seconds
        purse = f"{source}:{source_id}:{day}"
        return Expense(purse, purpose, allowance, allowance, seconds)

    async def _read(self, name: Name, allowance: int) -> Purse:
        from .tables import OF_DAY, SPENT

        source, source_id, day = name
        wanted = {"source": source, "source_id": source_id, "day": day}
        row = await self._host.store.first(SPENT, wanted)
        purse = Purse(name, Pool(allowance, 0 if row is None else row["spent"]))
        for each in await self._host.store.read(OF_DAY, wanted):
            kept = kept_of(each)
            purse.pool.used += await self._taken(kept.occasion)
            if kept.terms is not None and kept.terms.reserved:
                purse.hold(kept.occasion.id, kept.terms.reserved)
        return purse

    async def _taken(self, occasion: Occasion) -> int:
        """What an occasion has taken that a dead process was at, or that waits."""
        cost = occasion.cost_micro_usd
        if occasion.run_id or not occasion.agent_id:
            return cost
        total = await self._host.usage.of_turn(occasion.agent_id, occasion.id)
        return max(cost, total.cost_micro_usd)
