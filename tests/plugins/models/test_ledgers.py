"""The ledger is, to the micro-dollar, what a vendor counted by a table of its own."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from random import Random
from typing import Any

import pytest
from agenthost import Usage
from agenthost_dialects import anthropic_decoder, openai_decoder, responses_decoder

from .bench import Bench
from .upstream import Upstream

# Micro-dollars for a thousand tokens: read, read from a cache, written to one, said.
TABLE = {
    "chat": (5_000, 500, 6_250, 30_000),
    "responses": (1_250, 125, 1_563, 10_000),
    "claude": (3_000, 300, 3_750, 15_000),
}


class Vendor(Upstream):
    """Counts what it is asked, tells it as its dialect does, and keeps its own bill."""

    def __init__(self, slug: str, chance: Random) -> None:
        super().__init__(slug)
        self.chance, self.bill, self.rates = chance, 0, TABLE[slug]

    def facts(self) -> Any:
        from dataclasses import replace

        facts = super().facts()
        read, cached, written, said = (rate / 1_000 for rate in self.rates)
        (row,) = facts.models
        row = replace(
            row,
            input_cost_per_1m=read,
            cached_input_cost_per_1m=cached,
            cache_write_cost_per_1m=written,
            output_cost_per_1m=said,
        )
        return replace(facts, models=(row,))

    async def stream(self, call: Any) -> Any:
        fresh, said = self.chance.randint(1, 300_000), self.chance.randint(1, 60_000)
        cached = self.chance.choice((0, self.chance.randint(1, 90_000)))
        written = self.chance.choice((0, self.chance.randint(1, 90_000)))
        counts = (fresh, cached, written, said)
        whole = sum(Fraction(n * r, 1_000) for n, r in zip(counts, self.rates))  # noqa: B905
        self.bill += ceil(whole)
        self.usage = TOLD[self.slug](*counts)
        async for delta in super().stream(call):
            yield delta


def told_by_chat(fresh: int, cached: int, written: int, said: int) -> Usage:
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    told = {"prompt_tokens": fresh + cached + written, "completion_tokens": said}
    return openai_decoder.read_usage({**told, "prompt_tokens_details": details})


def told_by_responses(fresh: int, cached: int, written: int, said: int) -> Usage:
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    told = {"input_tokens": fresh + cached + written, "output_tokens": said}
    return responses_decoder.read_usage({**told, "input_tokens_details": details})


def told_by_claude(fresh: int, cached: int, written: int, said: int) -> Usage:
    return anthropic_decoder.read_usage(
        {
            "input_tokens": fresh,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "output_tokens": said,
        }
    )


TOLD = {
    "chat": told_by_chat,
    "responses": told_by_responses,
    "claude": told_by_claude,
}


async def settled(chance: Random) -> None:
    """Fill a ledger and compare it with the bills of those who wrote them."""
    vendors = [Vendor(slug, chance) for slug in TABLE]
    bench = Bench(vendors, {"budget": {"max_hourly_usd": 10_000.0}})
    for _ in range(chance.randint(1, 8)):
        await bench.ask(chance.choice([*TABLE]), bench.payer())
    for vendor in vendors:
        rows = [row for row in bench.ledger.rows if row.provider == vendor.slug]
        assert sum(row.cost_micro_usd for row in rows) == vendor.bill
    (meter,) = await bench.models._budgets._daemon_meters()
    bills = sum(vendor.bill for vendor in vendors)
    assert (meter.held, meter.used(bench.clock.time())) == (0, bills)


@pytest.mark.parametrize("seed", range(5))
async def test_a_ledger_equals_the_bills(seed: int) -> None:
    chance = Random(seed)
    for _ in range(20):
        await settled(chance)


@pytest.mark.faults
async def test_ten_thousand_ledgers_equal_the_bills() -> None:
    chance = Random(2_026)
    for _ in range(10_000):
        await settled(chance)
