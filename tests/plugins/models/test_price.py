"""Prices are whole micro-dollars, exact before they are rounded up once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from agenthost import LongContext, ModelFacts, Usage
from agenthost_models.price import price
from hypothesis import given
from hypothesis import strategies as st

MODEL = ModelFacts(
    "m", "acme", "m", "M", input_cost_per_1m=3.0, output_cost_per_1m=15.0
)
LONG = LongContext(200_000, 6.0, 22.5, 0.6, 7.5)

RATES = st.decimals(0, 500, places=4).map(float)
MAYBE = st.none() | RATES
TOKENS = st.integers(0, 10_000_000)
LONGS = st.builds(LongContext, st.integers(0, 1_000_000), RATES, RATES, MAYBE, MAYBE)
MODELS = st.builds(
    lambda rates, long: replace(
        MODEL,
        input_cost_per_1m=rates[0],
        output_cost_per_1m=rates[1],
        cached_input_cost_per_1m=rates[2],
        cache_write_cost_per_1m=rates[3],
        long_context=long,
    ),
    st.tuples(RATES, RATES, MAYBE, MAYBE),
    st.none() | LONGS,
)


def exact(rate: float) -> Fraction:
    return Fraction(str(rate))


def expected(model: ModelFacts, fresh: int, cached: int, usage: Usage) -> int:
    """Add the bill up with fractions, by another way than the code under test."""
    long = model.long_context
    over = long is not None and usage.input_tokens > long.above_input_tokens
    rates = long if over and long is not None else model
    lines = [
        (fresh, rates.input_cost_per_1m),
        (cached, rates.cached_input_cost_per_1m),
        (usage.cache_write_tokens, rates.cache_write_cost_per_1m),
        (usage.output_tokens, rates.output_cost_per_1m),
    ]
    whole = Fraction(0)
    for tokens, rate in lines:
        own = rates.input_cost_per_1m if rate is None else rate
        whole += Fraction(tokens, 1_000_000) * exact(own)
    return ceil(whole * 1_000_000)


@given(MODELS, TOKENS, TOKENS, TOKENS, TOKENS)
def test_a_price_is_the_exact_sum_rounded_up_once(
    model: ModelFacts, fresh: int, cached: int, written: int, output: int
) -> None:
    usage = Usage(fresh + cached + written, output, cached, written)
    assert price(model, usage) == expected(model, fresh, cached, usage)


@given(MODELS, TOKENS, TOKENS, TOKENS)
def test_a_price_never_falls_when_tokens_are_added(
    model: ModelFacts, fresh: int, output: int, more: int
) -> None:
    flat = replace(model, long_context=None)
    less = price(flat, Usage(fresh, output))
    assert less <= price(flat, Usage(fresh + more, output))
    assert less <= price(flat, Usage(fresh, output + more))


@pytest.mark.parametrize(
    ("usage", "micro_usd"),
    [
        (Usage(), 0),
        (Usage(1, 0), 3),
        (Usage(200_000, 0), 600_000),
        (Usage(200_001, 0), 1_200_006),
        (Usage(200_001, 10, cached_tokens=200_000), 120_231),
        (Usage(200_001, 0, cache_write_tokens=200_000), 1_500_006),
        (Usage(1_000, 0, cached_tokens=1_000), 3_000),
        (Usage(1, 0, cost_micro_usd=7), 7),
    ],
)
def test_known_bills_add_up(usage: Usage, micro_usd: int) -> None:
    assert price(replace(MODEL, long_context=LONG), usage) == micro_usd


def test_a_tenth_of_a_micro_dollar_is_not_lost() -> None:
    cheap = replace(MODEL, input_cost_per_1m=0.1, output_cost_per_1m=0.2)
    assert price(cheap, Usage(10, 0)) == 1
    assert price(cheap, Usage(11, 0)) == 2
    assert price(cheap, Usage(1, 1)) == 1
