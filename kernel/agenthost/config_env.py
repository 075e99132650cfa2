"""The environment as a layer of the configuration: ``AGENTHOST_<KEY>``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from agenthost_toml.parse import KeyPath
from agenthost_toml.problems import unknown_keys
from agenthost_toml.suggest import did_you_mean
from pydantic import BaseModel

from .config_model import Config

PREFIX = "AGENTHOST_"
OTHERS = frozenset({"AGENTHOST_HOME"})

_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


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


def read_environment(
    environ: Mapping[str, str], aliases: Mapping[str, str]
) -> EnvLayer:
    """Collect ``AGENTHOST_<KEY>`` variables; tables are joined by ``__``.

    Lists are JSON or comma separated, tables JSON. An empty variable counts as not
    set, so that it cannot take the file's ``api_key`` away; one that names no key is
    a warning.
    """
    layer = EnvLayer()
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in OTHERS and environ[variable]:
            _take(layer, variable, environ[variable], aliases)
    return layer


def _take(
    layer: EnvLayer, variable: str, text: str, aliases: Mapping[str, str]
) -> None:
    first, *rest = variable.removeprefix(PREFIX).lower().split("__")
    path = (aliases.get(first, first), *rest)
    try:
        annotation = _annotation(path)
    except KeyError as error:
        layer.warnings.append(f"{variable}: names no configuration key{error.args[0]}")
        return
    value = _value(annotation, text)
    if _put(layer.table, path, value):
        layer.variables[path] = variable
        _warn_inside(layer, variable, path)
    else:
        layer.warnings.append(f"{variable}: ignored, a variable above it is no table")


def _annotation(path: tuple[str, ...]) -> Any:
    """Find the type of a key.

    Raises:
        KeyError: There is none; its argument is the did-you-mean.
    """
    annotation: Any = Config
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


def _warn_inside(layer: EnvLayer, variable: str, path: tuple[str, ...]) -> None:
    for problem in unknown_keys(Config, layer.table):
        if problem.path[: len(path)] == path:
            layer.warnings.append(f"{variable}: {problem.key}: {problem.text}")
