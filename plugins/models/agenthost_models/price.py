"""What a call costs, and what it took when the provider does not say."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

from agenthost import (
    ChatRequest,
    LongContext,
    Message,
    ModelFacts,
    Part,
    Reasoning,
    Text,
    ToolUse,
    Usage,
)

from .estimate import measure

BYTES_PER_TOKEN = 4


def price(model: ModelFacts, usage: Usage) -> int:
    """Price a call in micro-USD: the provider's own figure when it gave one.

    A dollar per million tokens is a micro-dollar per token, so the catalogue's figures
    multiply directly; the exact sum is rounded up once. Above its threshold, a model's
    long-context rates hold for the whole call.
    """
    if usage.cost_micro_usd is not None:
        return usage.cost_micro_usd
    rates: ModelFacts | LongContext = model
    long = model.long_context
    if long is not None and usage.input_tokens > long.above_input_tokens:
        rates = long
    fresh, cost = usage.input_tokens, Decimal()
    if known := usage.cached_tokens + usage.cache_write_tokens:
        fresh = max(fresh - known, 0)
        cost = usage.cached_tokens * _rate(
            rates.cached_input_cost_per_1m, rates
        ) + usage.cache_write_tokens * _rate(rates.cache_write_cost_per_1m, rates)
    cost += fresh * _exact(rates.input_cost_per_1m)
    return math.ceil(cost + usage.output_tokens * _exact(rates.output_cost_per_1m))


def writes_cost_more(model: ModelFacts) -> bool:
    """Tell whether what is written to a cache has a price of its own."""
    long = model.long_context
    written = model.cache_write_cost_per_1m, long and long.cache_write_cost_per_1m
    return written != (None, None)


def _rate(own: float | None, rates: ModelFacts | LongContext) -> Decimal:
    return _exact(rates.input_cost_per_1m if own is None else own)


@lru_cache(maxsize=1_024)
def _exact(rate: float) -> Decimal:
    """Take the figure as it is written, not its nearest binary fraction."""
    return Decimal(str(rate))


def size_of(text: str) -> int:
    """Count a text's bytes: letters of other scripts take more tokens, and bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def length_of(message: Message) -> int:
    """Count the bytes of an answer, its thoughts and tool calls included."""
    return sum(map(_part_length, message.parts))


def _part_length(part: Part) -> int:
    match part:
        case Text(text) | Reasoning(text):
            return size_of(text)
        case ToolUse(_, name, arguments):
            return len(name) + size_of(str(arguments))
    return 0


def measured(usage: Usage, request: ChatRequest, heard: int) -> Usage:
    """Fill in what a provider left at zero; ``heard`` counts the answer's bytes.

    An empty answer may well have no output; a call without a prompt there is not.
    """
    if usage.input_tokens and usage.output_tokens:
        return usage
    output = usage.output_tokens or math.ceil(heard / BYTES_PER_TOKEN)
    return replace(
        usage,
        input_tokens=usage.input_tokens or measure(request).likely,
        output_tokens=output,
    )
