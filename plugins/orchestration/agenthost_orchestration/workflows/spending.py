"""What a run spends: kept over its legs, so that turns that go on draw from it too."""

from __future__ import annotations

import json
from dataclasses import field

from agenthost import Expense, Host, Pool
from agenthost_values.value_class import value_class

from .run_rows import Run
from .settings import WorkflowsSection


@value_class
class Spending:
    """The pool of a run, and what each of its calls took with all that it asked.

    ``apart`` is what agents took in former processes that unfinished calls had asked.
    """

    pool: Pool
    apart: int
    calls: dict[str, Pool] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> Spending:
        """Read it from a run's row; what its unfinished calls took is not in there."""
        used = run.cost_micro_usd + run.apart_micro_usd
        if run.max_cost_micro_usd is None:
            return cls(Pool(used=used), run.apart_micro_usd)
        limit = run.max_cost_micro_usd
        pool = Pool(limit, used, asks=asks_of(run.asks, limit))
        return cls(pool, run.apart_micro_usd)

    async def count(self, host: Host, agent_id: str, turn_id: str) -> None:
        """Count what a turn took of which nothing is known yet here."""
        if turn_id not in self.calls:
            before = await host.usage.of_turn(agent_id, turn_id)
            self.calls[turn_id] = Pool(used=before.cost_micro_usd)
            self.pool.used += before.cost_micro_usd

    def pools(self, turn_id: str) -> tuple[Pool, ...]:
        """What a turn of the run draws from."""
        return (self.pool, self.calls.setdefault(turn_id, Pool()))


def asked_by_itself(
    host: Host, run_id: str, name: str, limit: int | None
) -> Expense | None:
    """Say what a person may be asked about a run, where runs are to ask."""
    settings = host.settings(WorkflowsSection)
    if settings.over_cost == "refuse" or not limit:
        return None
    purpose = f"run {run_id} of the workflow {name!r}"
    purse, seconds = f"workflow_run:{run_id}", settings.answer_seconds
    return Expense(purse, purpose, limit, limit, seconds)


def asks_text(asks: Expense | None) -> str:
    """Write what a person may be asked as JSON; the limit stands in the run's row."""
    if asks is None:
        return ""
    return json.dumps([asks.purse, asks.purpose, asks.more, asks.deadline_seconds])


def asks_of(text: str, limit: int) -> Expense | None:
    """Read it again."""
    if not text:
        return None
    purse, purpose, more, seconds = json.loads(text)
    return Expense(purse, purpose, limit, more, seconds)
