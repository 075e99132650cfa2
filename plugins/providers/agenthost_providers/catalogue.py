"""Read a provider's facts from the data files of this package."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from agenthost import LongContext, ModelFacts, Probe, ProviderFacts

# How the catalogue calls the dialects that some rows ask for.
APIS = {"responses": "openai-responses"}
# Words beside one another, which a table shows in one line.
LISTS = {"efforts", "caches"}
KNOWN = {item.name for item in fields(ModelFacts)} - {"long_context"}


@cache
def load_facts(slug: str) -> ProviderFacts:
    """Read ``facts/<slug>.toml`` and the provider's rows of ``facts/models.json``.

    A provider whose models are no vendor's names them in its own file.
    """
    table = tomllib.loads(_read(f"{slug}.toml"))
    alternatives = tuple(table.pop("env_var_alternatives", ()))
    regions = tuple(table.pop("region_vars", ()))
    probe = table.pop("probe", None)
    factor = table.pop("cache_write_factor", None)
    own = table.pop("models", [])
    vectors = [_embedding(slug, row) for row in table.pop("embeddings", ())]
    # Each provider's rows are read once: what was read need not be kept.
    shared = _models().pop(slug, [])
    rows = [read_model(row) for row in [*own, *shared]]
    if factor is not None:
        rows = [_with_cache_writes(row, factor) for row in rows]
    return ProviderFacts(
        slug=slug,
        env_var_alternatives=alternatives,
        region_vars=regions,
        models=tuple(rows),
        embeddings=tuple(vectors),
        probe=Probe(**probe) if probe else None,
        **table,
    )


def _embedding(slug: str, row: Mapping[str, Any]) -> ModelFacts:
    """Read a row of ``[[embeddings]]``: a text may fill the window, nothing is said."""
    window = row["max_input"]
    usual = {"upstream_id": row["id"], "context_window": window, "max_output": 1}
    return ModelFacts(**{**usual, **row, "provider": slug})


def read_model(row: Mapping[str, Any]) -> ModelFacts:
    """Read a row; what the file does not know (null) keeps its default."""
    told = {k: row[k] for k in KNOWN & row.keys() if row[k] is not None}
    long = row.get("long_context")
    names, id_ = _names(), row["id"]
    told.setdefault("replaced_by", _tables()["successors"].get(id_))
    told |= {name: tuple(told[name].split()) for name in LISTS & told.keys()}
    if not told.get("supports_thinking"):
        told["thinking"] = "none"
    return ModelFacts(
        **told,
        long_context=LongContext(**long) if long else None,
        dialect=APIS.get(row.get("api", "")),
        aliases=tuple(names["aliases"].get(id_, ())),
        replaces=tuple(names["retired_redirects"].get(id_, ())),
    )


def cache_write_factor(slug: str) -> float | None:
    """Give what a provider's cache writes cost, as a share of fresh input."""
    factor: float | None = tomllib.loads(_read(f"{slug}.toml")).get(
        "cache_write_factor"
    )
    return factor


def excepted(row: Mapping[str, Any]) -> frozenset[str]:
    """Name the fields in which a row knows better than a price file."""
    return frozenset(
        name
        for each in _exceptions()
        if any(fnmatchcase(row["id"], model) for model in each["models"])
        for name in each["fields"]
    )


def _with_cache_writes(model: ModelFacts, factor: float) -> ModelFacts:
    """Fill in what a write to the prompt cache costs: a share of fresh input."""
    long = model.long_context
    if long is not None:
        share = _share(long.input_cost_per_1m, factor)
        long = replace(long, cache_write_cost_per_1m=share)
    written = model.cache_write_cost_per_1m
    if written is None:
        written = _share(model.input_cost_per_1m, factor)
    return replace(model, cache_write_cost_per_1m=written, long_context=long)


def _share(rate: float, factor: float) -> float:
    # Figures have few decimals; what binary fractions add is rounded away.
    return round(rate * factor, 9)


@cache
def _exceptions() -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = tomllib.loads(_read("exceptions.toml"))["exceptions"]
    return told


@cache
def _models() -> dict[str, list[dict[str, Any]]]:
    """Sort the shared rows by provider."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(_read("models.json"))["models"]:
        rows.setdefault(row["provider"], []).append(row)
    return rows


@cache
def _tables() -> dict[str, dict[str, str]]:
    """Read what names lead to, and what follows a model that ends."""
    tables: dict[str, dict[str, str]] = json.loads(_read("aliases.json"))
    return tables


@cache
def _names() -> dict[str, dict[str, list[str]]]:
    """Turn the two tables of names around: from a model's id to what leads to it."""
    turned: dict[str, dict[str, list[str]]] = {"aliases": {}, "retired_redirects": {}}
    for kind, leads in turned.items():
        for name, target in _tables()[kind].items():
            leads.setdefault(target, []).append(name)
    return turned


def _read(name: str) -> str:
    return (Path(__file__).parent / "facts" / name).read_text(encoding="utf-8")
