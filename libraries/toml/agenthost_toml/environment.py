"""The environment as a layer of settings: ``<PREFIX><KEY>``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from agenthost_values.value_class import value_class

from .parse import KeyPath
from .problems import Shape, bare, shape_of, unknown_keys
from .suggest import did_you_mean

_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


@value_class
class Keys:
    """What settings there are, and by which names they may be given.

    Attributes:
        shape: The keys outside any table; models of pydantic stand for tables.
        prefix: What variables begin with, such as ``"DAEMON_"``.
        aliases: Other names of keys outside any table, each with the key's own.
        reserved: Variables with the prefix that are no settings.
    """

    shape: Shape
    prefix: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    reserved: frozenset[str] = frozenset()


@dataclass(slots=True, repr=False)
class EnvLayer:
    """What the environment says, as a table, and which variable said what."""

    table: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    variables: dict[KeyPath, str] = field(default_factory=dict)

    def variable(self, path: KeyPath) -> str | None:
        """The variable that set this key or a table around it."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.variables:
                return self.variables[path[:end]]
        return None


def read_environment(keys: Keys, environ: Mapping[str, str]) -> EnvLayer:
    """Collect ``<PREFIX><KEY>`` variables; tables are joined by ``__``.

    Lists are JSON or comma separated, tables JSON. An empty variable counts as not
    set, so that it cannot take away what the file says; one that names no key is a
    warning.
    """
    layer = EnvLayer()
    for variable in sorted(environ):
        ours = variable.startswith(keys.prefix) and variable not in keys.reserved
        if ours and environ[variable]:
            _take(layer, variable, environ[variable], keys)
    return layer


def _take(layer: EnvLayer, variable: str, text: str, keys: Keys) -> None:
    first, *rest = variable.removeprefix(keys.prefix).lower().split("__")
    path = (keys.aliases.get(first, first), *rest)
    try:
        value = value_of(keys.shape, path, text)
    except KeyError as error:
        layer.warnings.append(f"{variable}: names no configuration key{error.args[0]}")
        return
    if _put(layer.table, path, value):
        layer.variables[path] = variable
        for problem in unknown_keys(keys.shape, layer.table):
            if problem.path[: len(path)] == path:
                layer.warnings.append(f"{variable}: {problem.key}: {problem.text}")
    else:
        layer.warnings.append(f"{variable}: ignored, a variable above it is no table")


def value_of(shape: Shape, path: tuple[str, ...], text: str) -> Any:
    """Read a value of a key that is written as plain text.

    Raises:
        KeyError: There is no such key; its argument is the did-you-mean.
    """
    annotation: Any = shape
    for part in path:
        below = shape_of(annotation)
        if below is not None:
            if part not in below:
                raise KeyError(did_you_mean(part, below))
            annotation = below[part]
        elif get_origin(annotation := bare(annotation)) is dict:
            annotation = get_args(annotation)[1]
        elif annotation is not Any:
            raise KeyError("")
    return _value(bare(annotation), text)


def _value(annotation: Any, text: str) -> Any:
    kinds = {annotation, *get_args(annotation)}
    if get_origin(annotation) is tuple:
        return _list(text)
    if bool in kinds:
        return _WORDS.get(text.strip().lower(), text)
    if kinds & {int, float}:
        return _json(text.strip())
    if get_origin(annotation) is dict or shape_of(annotation) is not None:
        return _json(text)
    return text


def _list(text: str) -> Any:
    if text.lstrip().startswith("["):
        return _json(text)
    return [part.strip() for part in text.split(",") if part.strip()]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _put(table: dict[str, Any], path: tuple[str, ...], value: Any) -> bool:
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return False
    table[path[-1]] = value
    return True
