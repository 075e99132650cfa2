"""The environment as a layer of settings: ``<PREFIX><KEY>``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args, get_origin

from pydantic import BaseModel

from .parse import KeyPath
from .problems import unknown_keys
from .suggest import did_you_mean

M = TypeVar("M", bound=BaseModel)

_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Keys(Generic[M]):
    """What settings there are, and by which names they may be given.

    Attributes:
        model: The keys, their types and defaults.
        prefix: What variables begin with, such as ``"DAEMON_"``.
        aliases: Other names of keys outside any table, each with the key's own.
        reserved: Variables with the prefix that are no settings.
    """

    model: type[M]
    prefix: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    reserved: frozenset[str] = frozenset()


@dataclass(slots=True)
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


def read_environment(keys: Keys[M], environ: Mapping[str, str]) -> EnvLayer:
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


def _take(layer: EnvLayer, variable: str, text: str, keys: Keys[M]) -> None:
    first, *rest = variable.removeprefix(keys.prefix).lower().split("__")
    path = (keys.aliases.get(first, first), *rest)
    try:
        annotation = _annotation(keys.model, path)
    except KeyError as error:
        layer.warnings.append(f"{variable}: names no configuration key{error.args[0]}")
        return
    value = _value(annotation, text)
    if _put(layer.table, path, value):
        layer.variables[path] = variable
        for problem in unknown_keys(keys.model, layer.table):
            if problem.path[: len(path)] == path:
                layer.warnings.append(f"{variable}: {problem.key}: {problem.text}")
    else:
        layer.warnings.append(f"{variable}: ignored, a variable above it is no table")


def _annotation(model: type[BaseModel], path: tuple[str, ...]) -> Any:
    """Find the type of a key.

    Raises:
        KeyError: There is none; its argument is the did-you-mean.
    """
    annotation: Any = model
    for part in path:
        if _is_model(annotation):
            fields = annotation.model_fields
            if part not in fields:
                raise KeyError(did_you_mean(part, fields))
            annotation = fields[part].annotation
        elif get_origin(annotation) is dict:
            annotation = get_args(annotation)[1]
        elif annotation is not Any:
            raise KeyError("")
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _value(annotation: Any, text: str) -> Any:
    kinds = {annotation, *get_args(annotation)}
    if get_origin(annotation) is tuple:
        return _list(text)
    if bool in kinds:
        return _WORDS.get(text.strip().lower(), text)
    if kinds & {int, float}:
        return _json(text.strip())
    if _is_model(annotation) or get_origin(annotation) is dict:
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
