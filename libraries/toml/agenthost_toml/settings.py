"""Settings: a TOML file, the environment over it, checked against models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .environment import EnvLayer, Keys, read_environment
from .parse import KeyPath
from .problems import Problem, Shape, problems, unknown_keys
from .source import SettingsError, Source

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """What file and environment say, not yet checked; it may hold secrets.

    Attributes:
        keys: What could be said.
        table: What is said, the environment over the file, aliases resolved.
        warnings: What was not understood, each with its place.
    """

    keys: Keys
    table: Mapping[str, Any]
    warnings: tuple[str, ...]
    source: Source
    environ: Mapping[str, str]
    layer: EnvLayer

    def checked(self, model: type[M], at: KeyPath = (), **given: object) -> M:
        """Check the values of a table and build its model.

        Args:
            model: The keys of the table, their types and defaults.
            at: Where the table stands; all that is said by default.
            given: Values that take the place of what is said.

        Raises:
            SettingsError: One line for each wrong key. No value is repeated: it may
                be a secret.
        """
        said = self.said(at)
        try:
            if said is None:
                return model(**given)
            return model.model_validate({**said, **given} if given else said)
        except ValidationError as error:
            found = [
                self._say(Problem((*at, *problem.path), problem.text))
                for problem in problems(error, said)
            ]
            raise SettingsError("\n".join(found)) from None

    def said(self, path: KeyPath) -> Any:
        """Give what is said of a key or a table; None when nothing is.

        Raises:
            SettingsError: What stands around it is no table.
        """
        value: Any = self.table
        for place, part in enumerate(path):
            if not isinstance(value, Mapping):
                raise SettingsError(self._say(Problem(path[:place], "must be a table")))
            value = value.get(part)
            if value is None:
                return None
        return value

    def where(self, path: KeyPath) -> str | None:
        """Name the variable or the line that says a key; None when neither does."""
        if self.said(path) is None:
            return None
        aliases = ((a,) for a, name in self.keys.aliases.items() if (name,) == path)
        lines = (self.source.where(name) for name in (path, *aliases))
        return self.layer.variable(path) or next(filter(None, lines), None)

    def reshaped(self, shape: Shape) -> Settings:
        """Read the same again, when more is known of what could be said."""
        return read_settings(replace(self.keys, shape=shape), self.source, self.environ)

    def _say(self, problem: Problem) -> str:
        variable = self.layer.variable(problem.path)
        if variable is not None:
            return f"{variable}: {problem.key}: {problem.text}"
        for alias, name in self.keys.aliases.items():
            if problem.path == (name,) and self.source.where((alias,)):
                return self.source.say(Problem((alias,), problem.text))
        return self.source.say(problem)


def read_settings(keys: Keys, source: Source, environ: Mapping[str, str]) -> Settings:
    """Read a file and the environment over it; an unknown key is a warning.

    Raises:
        SettingsError: The file is no TOML, or says a key twice.
    """
    table, layer = source.parse(), read_environment(keys, environ)
    warnings = [source.say(problem) for problem in _unknown(keys, table)]
    merged = _merged(_unalias(table, keys.aliases, source), layer.table)
    return Settings(keys, merged, (*warnings, *layer.warnings), source, environ, layer)


def _unknown(keys: Keys, table: Mapping[str, Any]) -> list[Problem]:
    named = {key: value for key, value in table.items() if key not in keys.aliases}
    return [_misplaced(p, keys) for p in unknown_keys(keys.shape, named)]


def _misplaced(problem: Problem, keys: Keys) -> Problem:
    key = problem.path[-1]
    if len(problem.path) > 1 and key in keys.shape:
        hint = f"unknown key, ignored; {key} belongs above the first [table]"
        return Problem(problem.path, hint)
    return problem


def _unalias(
    table: dict[str, Any], aliases: Mapping[str, str], source: Source
) -> dict[str, Any]:
    for alias, name in aliases.items():
        if alias not in table:
            continue
        if name in table:
            both = Problem((alias,), f"is the same as {name}; remove one of them")
            raise SettingsError(source.say(both))
        table[name] = table.pop(alias)
    return table


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merged(old, value) if both and old is not None else value
    return merged
