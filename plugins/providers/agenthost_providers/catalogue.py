"""Read a provider's facts from the data files of this package."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import Any

from agenthost import ModelFacts, ProviderFacts


def load_facts(slug: str) -> ProviderFacts:
    """Read ``facts/<slug>.toml`` and the provider's rows of ``facts/models.json``.

    A provider whose models are no vendor's names them in its own file.
    """
    table = tomllib.loads(_read(f"{slug}.toml"))
    alternatives = tuple(table.pop("env_var_alternatives", ()))
    own = table.pop("models", [])
    shared = [row for row in _models() if row["provider"] == slug]
    rows = tuple(_model(row) for row in [*own, *shared])
    return ProviderFacts(
        slug=slug, env_var_alternatives=alternatives, models=rows, **table
    )


def _model(row: dict[str, Any]) -> ModelFacts:
    """Read a row; what the file does not know (null) keeps its default."""
    known = {item.name for item in fields(ModelFacts)}
    told = {k: value for k, value in row.items() if k in known and value is not None}
    return ModelFacts(**told)


@cache
def _models() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(_read("models.json"))["models"]
    return rows


def _read(name: str) -> str:
    return (files(__package__) / "facts" / name).read_text(encoding="utf-8")
