"""Tables of agents' manifests that plugins read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from agenthost_toml.problems import dotted, fields_of, problems
from pydantic import BaseModel, ValidationError

from .errors import InvalidInput, PluginError
from .manifest_model import Manifest

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, eq=False)
class ManifestTable(Generic[T]):
    """Keys of agents' manifests that a plugin reads: ``TABLE.of(agent.manifest)``.

    Several plugins may read keys of one table; each key belongs to one of them. What
    a manifest says is checked when its agent is made, and kept while the plugin is off.

    Args:
        name: The table; empty for keys beside ``name`` and ``model``.
        model: Its keys, as JSON has them; each with a default.

    Raises:
        PluginError: A key is agenthost's own, or has no default.
    """

    name: str
    model: type[T]

    def __post_init__(self) -> None:
        own = Manifest.own_tables.get(self.name, Manifest)
        beside = not self.name or own is not Manifest
        if taken := (self.keys if beside else {self.name}) & fields_of(own).keys():
            raise PluginError(f"manifest {min(taken)}: this key is agenthost's own")
        for key, field in self.model.model_fields.items():
            if field.is_required():
                raise PluginError(f"manifest {self.name}.{key}: it needs a default")

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every name that one of its keys goes by."""
        return frozenset(fields_of(self.model))

    @property
    def names(self) -> list[str]:
        """Its keys as one writes them, each after its kind."""
        table = f"{self.name}." if self.name else ""
        return [f"manifest {table}{key}" for key in sorted(self.keys)]

    def of(self, manifest: Manifest) -> T:
        """Read what a manifest says there; what it leaves out has its default.

        Raises:
            InvalidInput: It was kept while nobody read it, and is wrong.
        """
        found = manifest.beside(self.name)
        if found is None or found == {}:
            return self._default
        known: tuple[object, T] | None = manifest.tables.get(self)
        # Copies of a manifest share what was read, until one has another table.
        if known is None or known[0] is not found:
            known = manifest.tables[self] = (found, self._read(found))
        return known[1]

    @cached_property
    def _default(self) -> T:
        return self.model.model_validate({})

    def _read(self, found: object) -> T:
        if isinstance(found, Mapping):
            found = {key: found[key] for key in self.keys & found.keys()}
            if not found:
                return self._default
        try:
            return self.model.model_validate(found)
        except ValidationError as error:
            first = problems(error, found)[0]
            path = (self.name, *first.path) if self.name else first.path
            raise InvalidInput(dotted(path), first.text) from None
