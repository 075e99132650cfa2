"""What does not fit a model, said with the key and the remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from agenthost_values.value_class import value_class
from pydantic import AliasChoices, BaseModel, RootModel, ValidationError

from .parse import KeyPath
from .suggest import did_you_mean

Shape = Mapping[str, Any]
"""The keys of a table, each with its type, or with the shape of a table below."""


@value_class
class Problem:
    """What is wrong with the value of one key, and how to mend it."""

    path: KeyPath
    text: str

    @property
    def key(self) -> str:
        """The path as one writes it in TOML."""
        return dotted(self.path)


def dotted(path: Sequence[str | int]) -> str:
    """Write a path as ``table.key`` or ``list[0].key``."""
    parts = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return "".join(parts).removeprefix(".")


def unknown_keys(
    known: Shape | type[BaseModel], table: Mapping[str, Any], at: KeyPath = ()
) -> Iterator[Problem]:
    """Find the keys, at any depth, that the shape or model does not have."""
    keys = shape_of(known) or {}
    for key, value in table.items():
        if key in keys:
            yield from _unknown_below(keys[key], value, (*at, key))
        else:
            hint = did_you_mean(key, keys)
            yield Problem((*at, key), f"unknown key, ignored{hint}")


def bare(annotation: Any) -> Any:
    """Take the type of a root model out of it; others are as they are."""
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        return annotation.model_fields["root"].annotation
    return annotation


def shape_of(annotation: Any) -> Shape | None:
    """The keys that a table of this type has, aliases too; None when it is none."""
    annotation = bare(annotation)
    if isinstance(annotation, Mapping):
        return annotation
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return None
    return fields_of(annotation)


def fields_of(model: type[BaseModel]) -> dict[str, Any]:
    """The types of a model's fields, by every name that they go by in a document."""
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        fields[name] = field.annotation
        if isinstance(field.validation_alias, AliasChoices):
            names = field.validation_alias.choices
            fields |= {str(alias): field.annotation for alias in names}
    return fields


def _unknown_below(annotation: Any, value: Any, path: KeyPath) -> Iterator[Problem]:
    shape = shape_of(annotation := bare(annotation))
    if shape is not None:
        if isinstance(value, Mapping):
            # A model that names the type of its other keys means to have some.
            own = getattr(annotation, "__dict__", {}).get("__annotations__", ())
            others = dict.fromkeys(value if "__pydantic_extra__" in own else ())
            yield from unknown_keys({**others, **shape}, value, path)
        return
    inner = [a for a in get_args(annotation) if a is not Ellipsis]
    if not inner:
        return
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _unknown_below(inner[0], element, (*path, index))
    elif isinstance(value, Mapping) and inner[0] is str and len(inner) == 2:
        for key, element in value.items():
            yield from _unknown_below(inner[1], element, (*path, key))
    else:
        yield from _unknown_below(inner[0], value, path)


def problems(error: ValidationError, raw: object) -> list[Problem]:
    """Say in our words what pydantic found, one problem a key.

    Values are never repeated: they may be secrets.
    """
    found: dict[KeyPath, Problem] = {}
    for item in error.errors(include_url=False):
        path = _existing(item["loc"], raw)
        if item["type"] == "missing":
            path = (*path, item["loc"][-1])
        found.setdefault(path, Problem(path, _say(dict(item))))
    return list(found.values())


def _existing(location: KeyPath, raw: Any) -> KeyPath:
    path: list[str | int] = []
    for part in location:
        named = isinstance(raw, dict) and part in raw
        counted = isinstance(raw, list) and isinstance(part, int) and part < len(raw)
        if named or counted:
            raw = raw[part]
            path.append(part)
    return tuple(path)


def _say(item: Mapping[str, Any]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    words = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    if kind in words["wanted"]:
        found = words["types"].get(type(item["input"]).__name__, "a date or time")
        return f"must be {words['wanted'][kind]}; it is {found}"
    if kind == "missing":
        return "is missing; add it"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return _say_choice(context["expected"], item["input"])
    if kind == "extra_forbidden":
        return "unknown key; remove it"
    return str(item["msg"]).replace("Input should be", "must be").replace("Value", "it")


def _say_choice(expected: str, value: object) -> str:
    choices = re.findall(r"'([^']*)'", expected)
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    return f"must be one of {', '.join(choices)}{hint}"
