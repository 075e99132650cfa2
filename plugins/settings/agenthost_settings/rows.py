"""The configuration in force, key by key, and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenthost_toml.parse import KeyPath
from agenthost_toml.problems import dotted
from agenthost_toml.settings import Settings as Said
from pydantic import BaseModel

from .checking import path_of
from .rehearsal import Rehearsal

if TYPE_CHECKING:
    from collections.abc import Iterable

HIDDEN = "***"
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Row:
    """A key, its value with secrets masked, and the line or variable that says it."""

    key: str
    value: Any
    place: str

    @property
    def shown(self) -> str:
        """The value as one writes it in TOML."""
        import tomlkit

        return "" if self.value is None else tomlkit.item(self.value).as_string()

    @property
    def line(self) -> str:
        """The row for people."""
        said = (
            f"{self.key} = {self.shown}" if self.shown else f"# {self.key} is not set"
        )
        return f"{said:<48}  # {self.place}"


def rows_of(found: Rehearsal) -> Iterator[Row]:
    """List the keys: the kernel's, the plugins', and those that nobody reads."""
    settings = found.settings
    yield from _of_values(settings.said, (), _dumped(found.config))
    for name, (_, model) in sorted(settings.claims.items()):
        yield from _of_values(settings.said, path_of(name), _dumped(settings(model)))
    for name in sorted(settings.idle):
        path = path_of(name)
        # Nobody knows what in there is a secret.
        yield from _masked(settings.said, path, settings.said.said(path))


def _dumped(values: BaseModel) -> Any:
    return values.model_dump(mode="json", fallback=lambda _: HIDDEN)


def _of_values(said: Said, path: KeyPath, value: Any) -> Iterator[Row]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _of_values(said, (*path, key), inner)
    else:
        yield Row(dotted(path), value, said.where(path) or DEFAULT)


def _masked(said: Said, path: KeyPath, value: Any) -> Iterator[Row]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _masked(said, (*path, key), inner)
    elif value is not None:
        yield Row(dotted(path), HIDDEN, said.where(path) or DEFAULT)


def below(rows: Iterable[Row], key: str) -> list[Row]:
    """Keep the rows of a key, or of what stands below it."""
    return [row for row in rows if row.key == key or row.key.startswith(f"{key}.")]
