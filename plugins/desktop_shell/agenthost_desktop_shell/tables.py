"""All permission tables together: identifiers looked up, sets expanded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cached_property

from .findings import CapabilityError, Finding
from .framework import builtin_tables
from .identifiers import CORE, parse_identifier, qualify
from .manifests import (
    DEFAULT,
    Module,
    Permission,
    hyphens,
)

MAX_EXPANSION = 10_000
# Modules have short names: "store" is no slip for "core", nor "log" for "dialog".
CLOSE = 0.79
WAY_OUT = (
    "build the application once, so that gen/schemas/acl-manifests.json has the "
    "table, or name a file that has it with --manifests"
)


class UnknownIdentifier(ValueError):
    """No table has the module, or the module's has no such permission."""


class Tables:
    """The modules that exist and what their identifiers mean."""

    def __init__(self, modules: Iterable[Module]) -> None:
        """Take the modules and check that every set leads somewhere.

        Raises:
            CapabilityError: A module is registered twice, or a set names something
                unknown, itself, or more than can be expanded.
        """
        self.modules: dict[str, Module] = {}
        for module in modules:
            if module.name in self.modules:
                raise _refuse(module, "is registered twice; merge the two tables")
            self.modules[module.name] = module
        self._expanded: dict[str, tuple[Permission, ...]] = {}
        for module in self.modules.values():
            self._check(module)

    @classmethod
    def builtin(cls, *more: Module) -> Tables:
        """The tables that come with agenthost, and these instead of their namesakes."""
        named = {module.name for module in more}
        return cls((*(m for m in builtin_tables() if m.name not in named), *more))

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Every identifier a capability may name."""
        return frozenset(
            name for module in self.modules.values() for name in module.names()
        )

    @cached_property
    def commands(self) -> frozenset[str]:
        """Every command some permission is about."""
        return frozenset().union(*(m.commands for m in self.modules.values()))

    def command(self, text: str) -> str:
        """Write a command as the tables do.

        Takes ``core:window:set-title``, underscores, aliases, and the form of the
        shell's wire: ``plugin:window|set_title``.
        """
        module, name = self._split(text)
        known = self.modules.get(module)
        if known is not None:
            name = known.aliases.get(name, name)
        return qualify(module, name)

    def expand(self, identifier: str) -> tuple[Permission, ...]:
        """List the permissions an identifier stands for, depth first, in order.

        Raises:
            ValueError: The identifier is malformed or unknown.
        """
        found = self._expanded.get(identifier)
        if found is None:
            found = tuple(self._walk(identifier, ()))
            self._expanded[identifier] = found
        return found

    def _split(self, text: str) -> tuple[str, str]:
        if text.startswith("plugin:") and "|" in text:
            module, _, name = text.removeprefix("plugin:").partition("|")
            if f"{CORE}{module}" in self.modules:
                module = f"{CORE}{module}"
        else:
            module, _, name = text.rpartition(":")
        return module, hyphens(name)

    def _check(self, module: Module) -> None:
        for name in module.names():
            try:
                self.expand(name)
            except ValueError as error:
                raise _refuse(module, f"{name}: {error}") from error

    def _walk(self, identifier: str, above: tuple[str, ...]) -> Iterator[Permission]:
        if identifier in above:
            raise ValueError(f"the set {identifier!r} contains itself")
        parsed = parse_identifier(identifier)
        module = self._module(identifier, parsed.module)
        name = module.canonical(parsed.name)
        if name in module.permissions:
            yield module.permissions[name]
        elif name in module.sets:
            yield from self._members(module, name, (*above, identifier))
        elif name != DEFAULT:
            raise UnknownIdentifier(self._unknown(parsed.module, parsed.name))

    def _members(
        self, module: Module, name: str, above: tuple[str, ...]
    ) -> Iterator[Permission]:
        count = 0
        for member in module.sets[name]:
            inner = member if ":" in member else qualify(module.name, member)
            if above and inner in above:
                raise ValueError(f"the set {inner!r} contains itself")
            expanded = self._expanded.get(inner) or tuple(self._walk(inner, above))
            self._expanded[inner] = expanded
            count += len(expanded)
            if count > MAX_EXPANSION:
                raise ValueError(f"a set stands for over {MAX_EXPANSION} permissions")
            yield from expanded

    def _module(self, identifier: str, name: str) -> Module:
        module = self.modules.get(name)
        if module is not None:
            return module
        if not name:
            raise UnknownIdentifier(
                f"unknown permission {identifier!r}: the application has no permission "
                "table; write one in permissions/*.toml, or write module:permission"
            )
        near = get_close_matches(name, self.modules, n=1, cutoff=CLOSE)
        hint = f"did you mean {near[0]!r}? Else " if near else ""
        raise UnknownIdentifier(f"unknown module {name!r}; {hint}{WAY_OUT}")

    def _unknown(self, module: str, name: str) -> str:
        owner = repr(module) if module else "the application"
        known = self.modules[module]
        # Without the prefix: a long one makes everything look alike.
        names = sorted(each.rpartition(":")[2] for each in known.names())
        near = get_close_matches(name, names, n=1, cutoff=CLOSE)
        if near:
            hint = f"; did you mean {qualify(module, near[0])!r}?"
        elif known.source:
            hint = f"; the table known here is that of {known.source}: {WAY_OUT}"
        else:
            hint = "; see its table"
        return f"unknown permission {name!r} of {owner}{hint}"


def _refuse(module: Module, problem: str) -> CapabilityError:
    owner = module.name or "the application"
    return CapabilityError([Finding(f"permission table of {owner}: {problem}")])
