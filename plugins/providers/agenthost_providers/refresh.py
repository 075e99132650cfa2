"""``agenthost models refresh``: bring the catalogue up to a price file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import click
from agenthost import AgentHostError, InvalidInput

from .abilities import apply_abilities
from .catalogue import cache_write_factor, excepted, read_model
from .prices import NEEDED, Price, read_prices

CATALOGUE = "models.json"
COSTS = (*NEEDED, "cached_input_cost_per_1m")
# How the price files call providers whose slug here is another word.
FORMER_NAMES = {
    "gemini": ("gemini", "google"),
    "together": ("together_ai", "together"),
    "fireworks": ("fireworks_ai", "fireworks"),
    "xai": ("xai", "x-ai"),
    "bedrock": ("bedrock", "bedrock_converse", "aws"),
    "huggingface": ("huggingface",),
}


@dataclass(slots=True)
class Outcome:
    """What a refresh did: rows with new facts, and rows that the file does not know."""

    changed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@click.group()
def models() -> None:
    """The catalogue of models."""


@models.command()
@click.option(
    "--prices",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A price file of litellm (JSON) or genai-prices (data.json).",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write; without it this installation's catalogue is replaced.",
)
@click.option(
    "--allow-free",
    is_flag=True,
    help="Take a price that falls to 0; without it such a file is refused.",
)
def refresh(prices: Path, output: Path | None, *, allow_free: bool) -> None:
    """Take prices and abilities of known models from a price file."""
    try:
        with as_file(files(__package__) / "facts" / CATALOGUE) as own:
            catalogue = json.loads(own.read_text(encoding="utf-8"))
            known = read_prices(prices.read_text(encoding="utf-8"))
            outcome = refreshed(catalogue, known, allow_free=allow_free)
            _replace(output or own, json.dumps(catalogue, indent=1) + "\n")
    except AgentHostError as error:
        raise click.ClickException(f"{prices.name}: {error.message}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{prices.name}: {error}") from error
    for line in outcome.changed:
        click.echo(line)
    click.echo(
        f"{len(outcome.changed)} of {len(catalogue['models'])} models changed; "
        f"{len(outcome.unknown)} are not in the file"
    )


def refreshed(
    catalogue: dict[str, Any], prices: Mapping[str, Price], *, allow_free: bool = False
) -> Outcome:
    """Change the catalogue's rows in place, in their order, and check each of them.

    Raises:
        InvalidInput: No row is known to the file, a row became unusable, or a price
            falls to 0 and may not.
    """
    outcome = Outcome()
    rows = catalogue["models"]
    for row in rows:
        found = price_of(row, prices)
        if found is None:
            outcome.unknown.append(row["id"])
            continue
        before = dict(row)
        _apply(found, row)
        _check(row)
        if not allow_free:
            _refuse_free(before, row)
        told = [
            f"{name} {_shown(before.get(name))} -> {_shown(row[name])}"
            for name in row
            if row[name] != before.get(name)
        ]
        if told:
            outcome.changed.append(f"{row['id']}: {'; '.join(told)}")
    if len(outcome.unknown) == len(rows):
        raise InvalidInput("prices", "names no model of the catalogue")
    return outcome


def price_of(row: Mapping[str, Any], prices: Mapping[str, Price]) -> Price | None:
    """Find what a file says of a row, under whichever name it has there."""
    return next((prices[key] for key in _keys(row) if key in prices), None)


def told_costs(price: Price, row: Mapping[str, Any]) -> dict[str, float]:
    """Give the prices that a row has to store.

    A write to the cache is none of them where it is the provider's fixed share of
    input, or where the file has 0: that says that it costs what input does.
    """
    costs = dict(price.costs)
    written = costs.get("cache_write_cost_per_1m")
    factor = cache_write_factor(row["provider"])
    share = round(costs["input_cost_per_1m"] * factor, 9) if factor else 0.0
    if written in (0.0, share):
        costs.pop("cache_write_cost_per_1m", None)
    return costs


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _refuse_free(before: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    for name in COSTS:
        for old, new in (
            (before, row),
            (before.get("long_context", {}), row.get("long_context", {})),
        ):
            if old.get(name) and new.get(name) == 0:
                raise InvalidInput(
                    str(row["id"]),
                    f"{name} falls from {old[name]} to 0; pass --allow-free if it is "
                    "free now",
                )


def _keys(row: Mapping[str, Any]) -> Iterator[str]:
    """List what the files may call a row, the name it was taken from first."""
    source = str(row.get("source", ""))
    if ":" in source:
        yield source.partition(":")[2]
    slug = row["provider"]
    for name in FORMER_NAMES.get(slug, (slug,)):
        yield f"{name}/{row['upstream_id']}"
    if slug in {"anthropic", "openai", "bedrock", "cohere"}:
        yield row["upstream_id"]


def _apply(price: Price, row: dict[str, Any]) -> None:
    kept = {name: row[name] for name in excepted(row) & row.keys()}
    row.update(told_costs(price, row))
    apply_abilities(price.abilities, row)
    if price.long_context is not None:
        long = dict(price.long_context)
        if "cache_write_cost_per_1m" not in row.get("long_context", {}):
            long.pop("cache_write_cost_per_1m", None)
        row["long_context"] = {**row.get("long_context", {}), **long}
    if price.deprecation_date is not None:
        row["deprecation_date"] = price.deprecation_date
        row["status"] = "deprecating"
    row.update(kept)
    for name in excepted(row) - kept.keys():
        row.pop(name, None)


def _check(row: Mapping[str, Any]) -> None:
    try:
        model = read_model(row)
    except (TypeError, KeyError) as error:
        raise InvalidInput(str(row.get("id")), f"cannot be read: {error}") from error
    if model.output_cost_per_1m > 10_000 or model.input_cost_per_1m > 10_000:
        raise InvalidInput(
            model.id, "costs more than 10,000 dollars a million tokens; wrong unit?"
        )


def _replace(path: Path, text: str) -> None:
    """Write the whole file or nothing."""
    handle, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
