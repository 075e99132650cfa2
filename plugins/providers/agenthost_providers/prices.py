"""Read public price files: litellm's table of models, and the list of genai-prices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agenthost import InvalidInput

from .abilities import Abilities, read_abilities

MILLION = Decimal(1_000_000)
ABOVE = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
# litellm's field, ours; prices there are per token, ours per million.
LITELLM_COSTS = {
    "input_cost_per_token": "input_cost_per_1m",  # nosec B105 # a name
    "output_cost_per_token": "output_cost_per_1m",  # nosec B105 # a name
    "cache_read_input_token_cost": "cached_input_cost_per_1m",  # nosec B105 # a name
    "cache_creation_input_token_cost": "cache_write_cost_per_1m",  # nosec B105 # a name
}
GENAI_COSTS = {
    "input_mtok": "input_cost_per_1m",
    "output_mtok": "output_cost_per_1m",
    "cache_read_mtok": "cached_input_cost_per_1m",
    "cache_write_mtok": "cache_write_cost_per_1m",
}
NEEDED = ("input_cost_per_1m", "output_cost_per_1m")


@dataclass(frozen=True, slots=True)
class Price:
    """What a file says of one model, in the catalogue's words."""

    costs: Mapping[str, float]
    long_context: Mapping[str, float] | None = None
    deprecation_date: str | None = None
    abilities: Abilities = field(default_factory=Abilities)


def read_prices(text: str) -> dict[str, Price]:
    """Read a price file; keys are litellm's, or ``<provider>/<id>``.

    Raises:
        InvalidInput: It is of neither kind, or names the place that is wrong.
    """
    try:
        value = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("prices", f"is not JSON: {error}") from error
    found = dict(_genai(value) if isinstance(value, list) else _litellm(value))
    if not found:
        raise InvalidInput(
            "prices",
            "holds no price; expected litellm's table of models or genai-prices' "
            "list of providers",
        )
    return found


def _litellm(value: Any) -> Iterator[tuple[str, Price]]:
    table = _table(value, "prices")
    for name, row in table.items():
        if not isinstance(row, Mapping):
            raise InvalidInput(name, "is no table of facts")
        if name == "sample_spec" or "input_cost_per_token" not in row:
            continue
        costs = {
            ours: _cost(row[theirs], f"{name}.{theirs}", MILLION)
            for theirs, ours in LITELLM_COSTS.items()
            if row.get(theirs) is not None
        }
        if all(needed in costs for needed in NEEDED):
            date = row.get("deprecation_date")
            date = date if isinstance(date, str) else None
            long = _litellm_long(name, row)
            yield name, Price(costs, long, date, read_abilities(row))


def _litellm_long(name: str, row: Mapping[str, Any]) -> dict[str, float] | None:
    steps = {int(found[1]) for key in row if (found := ABOVE.fullmatch(key))}
    if not steps:
        return None
    step = min(steps)
    suffix = f"_above_{step}k_tokens"
    costs = {
        ours: _cost(row[theirs + suffix], f"{name}.{theirs}{suffix}", MILLION)
        for theirs, ours in LITELLM_COSTS.items()
        if row.get(theirs + suffix) is not None
    }
    if not all(needed in costs for needed in NEEDED):
        return None
    return {"above_input_tokens": step * 1000, **costs}


def _genai(value: list[Any]) -> Iterator[tuple[str, Price]]:
    for number, entry in enumerate(value):
        provider = _table(entry, f"prices[{number}]")
        name = provider.get("id")
        if not isinstance(name, str):
            raise InvalidInput(f"prices[{number}].id", "is missing")
        models = provider.get("models")
        if not isinstance(models, list):
            raise InvalidInput(f"{name}.models", "is not a list")
        for place, row in enumerate(models):
            model = _table(row, f"{name}.models[{place}]")
            priced = _genai_price(model, f"{name}.{model.get('id')}")
            if priced is not None:
                yield f"{name}/{model.get('id')}", priced


def _genai_price(model: Mapping[str, Any], where: str) -> Price | None:
    prices = model.get("prices")
    if isinstance(prices, list):
        # Prices under conditions; the one without any is the usual one.
        usual = [p for p in prices if isinstance(p, dict) and not p.get("constraint")]
        prices = usual[-1].get("prices") if usual else None
    if not isinstance(prices, Mapping):
        return None
    base: dict[str, float] = {}
    tiers: dict[int, dict[str, float]] = {}
    for theirs, ours in GENAI_COSTS.items():
        rate = prices.get(theirs)
        if isinstance(rate, Mapping):
            for start, cost in _tiers(rate, f"{where}.{theirs}"):
                tiers.setdefault(start, {})[ours] = cost
            rate = rate.get("base")
        if rate is not None:
            base[ours] = _cost(rate, f"{where}.{theirs}", Decimal(1))
    if not all(needed in base for needed in NEEDED):
        return None
    return Price(base, _genai_long(base, tiers))


def _genai_long(
    base: Mapping[str, float], tiers: Mapping[int, Mapping[str, float]]
) -> dict[str, float] | None:
    if not tiers:
        return None
    start = min(tiers)
    return {"above_input_tokens": start, **base, **tiers[start]}


def _tiers(rate: Mapping[str, Any], where: str) -> Iterator[tuple[int, float]]:
    tiers = rate.get("tiers", [])
    for place, entry in enumerate(tiers if isinstance(tiers, list) else []):
        tier = _table(entry, f"{where}.tiers[{place}]")
        start = tier.get("start")
        if not isinstance(start, int):
            raise InvalidInput(f"{where}.tiers[{place}].start", "is no whole number")
        place_of = f"{where}.tiers[{place}].price"
        yield start, _cost(tier.get("price"), place_of, Decimal(1))


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(where, "is no table of facts")
    return value


def _cost(value: Any, where: str, factor: Decimal) -> float:
    try:
        cost = Decimal(str(value)) * factor
    except ArithmeticError as error:
        raise InvalidInput(where, f"is no number: {value!r}") from error
    if isinstance(value, bool) or not cost.is_finite() or cost < 0:
        raise InvalidInput(where, f"is no price: {value!r}")
    return float(cost)
