"""Settings: a TOML file, the environment over it, checked against a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from pydantic import ValidationError

from .environment import EnvLayer, Keys, M, read_environment
from .problems import Problem, problems, unknown_keys
from .source import SettingsError, Source, read_source


@dataclass(frozen=True, slots=True)
class Settings(Generic[M]):
    """What file and environment say, not yet checked.

    Attributes:
        keys: What could be said.
        table: What is said, the environment over the file, aliases resolved.
        warnings: What was not understood, each with its place.
    """

    keys: Keys[M]
    table: Mapping[str, Any]
    warnings: tuple[str, ...]
    source: Source
    layer: EnvLayer

    def checked(self, **given: object) -> M:
        """Check the values and build the model.

        Args:
            given: Values that take the place of what is said.

        Raises:
            SettingsError: One line for each wrong key. No value is repeated: it may
                be a secret.
        """
        table = {**self.table, **given}
        try:
            return self.keys.model.model_validate(table)
        except ValidationError as error:
            said = [self._say(problem) for problem in problems(error, table)]
            raise SettingsError("\n".join(said)) from None

    def where(self, key: str) -> str | None:
        """Name the line of a key, under any of its names; None without one."""
        names = (key, *(a for a, name in self.keys.aliases.items() if name == key))
        return next(filter(None, (self.source.where((n,)) for n in names)), None)

    def idle(self, sections: Iterable[str]) -> Iterator[str]:
        """Warn of those of these sections that are said, since nothing reads them."""
        for section in sections:
            said = self.table.get(section)
            # Who switches it off has what they want.
            if said and not (isinstance(said, dict) and said.get("enabled") is False):
                where = self.where(section)
                place = f"{where}: " if where else ""
                yield f"{place}no plugin serves [{section}] yet; it has no effect"

    def exposed(self, secret: Iterable[str]) -> Iterator[str]:
        """Warn when others can read the file and one of these keys stands in it."""
        named = [key for key in secret if self.source.where((key,))]
        if self.source.shared and named:
            yield (
                f"{self.source.name}: other users of this machine can read it, and "
                f"{' and '.join(named)} may hold a secret; chmod 600 it"
            )

    def _say(self, problem: Problem) -> str:
        variable = self.layer.variable(problem.path)
        if variable is not None:
            return f"{variable}: {problem.key}: {problem.text}"
        for alias, name in self.keys.aliases.items():
            if problem.path == (name,) and self.source.where((alias,)):
                return self.source.say(Problem((alias,), problem.text))
        return self.source.say(problem)


def read_settings(keys: Keys[M], file: Path, environ: Mapping[str, str]) -> Settings[M]:
    """Read a file and the environment over it.

    An unknown key is a warning; a missing file says nothing.

    Raises:
        SettingsError: The file cannot be read, is no TOML, or says a key twice.
    """
    source = read_source(file)
    table, layer = source.parse(), read_environment(keys, environ)
    warnings = [source.say(problem) for problem in _unknown(keys, table)]
    merged = _merged(_unalias(table, keys.aliases, source), layer.table)
    return Settings(keys, merged, (*warnings, *layer.warnings), source, layer)


def _unknown(keys: Keys[M], table: Mapping[str, Any]) -> list[Problem]:
    named = {key: value for key, value in table.items() if key not in keys.aliases}
    return [_misplaced(p, keys) for p in unknown_keys(keys.model, named)]


def _misplaced(problem: Problem, keys: Keys[M]) -> Problem:
    key = problem.path[-1]
    if len(problem.path) > 1 and key in keys.model.model_fields:
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
