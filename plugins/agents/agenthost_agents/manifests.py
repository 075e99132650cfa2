"""Read an agent's manifest: TOML in, a typed manifest and warnings out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from itertools import islice
from operator import getitem
from typing import Any, cast

from agenthost import InvalidInput, Manifest, ManifestTable, TooLarge
from agenthost_toml.parse import TomlSyntax, parse_toml
from agenthost_toml.problems import Problem, fields_of, problems, unknown_keys
from agenthost_toml.suggest import did_you_mean
from agenthost_values.value_class import value_class
from pydantic import BaseModel, ValidationError

from .facts import UNSERVED

LARGEST = 1024 * 1024
MOST_WARNINGS = 100
Tables = Collection[ManifestTable[Any]]


@value_class
class ParsedManifest:
    """A manifest, and what in it was not understood or is not used."""

    manifest: Manifest
    warnings: tuple[str, ...] = ()


def parse_manifest(text: str, tables: Tables) -> ParsedManifest:
    """Read a manifest that may come from a stranger.

    Args:
        text: TOML.
        tables: What plugins read of it, which is checked as well.

    Raises:
        InvalidInput: Naming ``manifest_toml`` with line and column when it is no TOML,
            else the first key whose value is wrong.
        TooLarge: It is over 1 MiB.
    """
    if len(text) > LARGEST or len(text.encode(errors="replace")) > LARGEST:
        raise TooLarge("manifest_toml: larger than 1 MiB; make it smaller")
    try:
        text.encode()
        document = parse_toml(text.replace("\r\n", "\n"))
    except TomlSyntax as error:
        raise InvalidInput("manifest_toml", str(error)) from error
    except UnicodeEncodeError:
        raise InvalidInput("manifest_toml", "holds half a character") from None
    try:
        # What runs now is what a restart reads: JSON has no dates, for one.
        manifest = Manifest.from_json(Manifest.model_validate(document).model_json())
    except ValidationError as error:
        first = problems(error, document)[0]
        raise InvalidInput(first.key, first.text) from None
    for table in tables:
        table.of(manifest)
    warnings = list(islice(_unread(document, tables), MOST_WARNINGS + 1))
    if len(warnings) > MOST_WARNINGS:
        warnings[MOST_WARNINGS:] = ["and more of this kind"]
    return ParsedManifest(manifest, tuple(warnings))


def _unread(document: Mapping[str, Any], tables: Tables) -> Iterator[str]:
    """Say of each written key that nobody reads why that is."""
    for problem in _unknown(document, tables):
        kind = ".".join("*" if isinstance(part, int) else part for part in problem.path)
        if kind not in UNSERVED:
            yield f"{problem.key}: {problem.text}"
            continue
        said = reduce(getitem, problem.path, cast("Any", document))
        if said != UNSERVED[kind].get("default"):
            yield f"{problem.key}: no plugin serves it yet"


def _unknown(document: Mapping[str, Any], tables: Tables) -> Iterator[Problem]:
    """Find what neither agenthost nor a plugin knows, at any depth."""
    levels = _levels(tables)
    for name, models in levels.items():
        at, found = ((name,), document.get(name)) if name else ((), document)
        if not isinstance(found, Mapping):
            continue
        models_of = {key: model for model in models for key in fields_of(model)}
        names = {*models_of, *(levels if not name else ()), *_unserved(name)}
        for key, value in found.items():
            if not name and key in levels:
                continue
            if key in models_of:
                yield from unknown_keys(models_of[key], {key: value}, at)
            else:
                hint = did_you_mean(key, names)
                yield Problem((*at, key), f"unknown key, ignored{hint}")


def _levels(tables: Tables) -> dict[str, list[type[BaseModel]]]:
    """The tables of which several may know keys, each with what they know."""
    levels: dict[str, list[type[BaseModel]]] = {"": [Manifest]}
    levels |= {name: [model] for name, model in Manifest.own_tables.items()}
    for table in tables:
        levels.setdefault(table.name, []).append(table.model)
    for key in UNSERVED:
        if "." in key and "*" not in key:
            levels.setdefault(key.partition(".")[0], [])
    return levels


def _unserved(table: str) -> list[str]:
    return [
        key.rpartition(".")[2] for key in UNSERVED if key.rpartition(".")[0] == table
    ]
