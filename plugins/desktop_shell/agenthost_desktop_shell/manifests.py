"""Permission tables: what each module's commands, permissions and sets are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenthost_toml.problems import problems
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from .findings import CapabilityError, Finding
from .identifiers import parse_identifier, qualify
from .terms import Target

DEFAULT = "default"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ScopeTable(_Strict):
    """Scope values that a permission itself brings along."""

    allow: tuple[JsonValue, ...] | None = None
    deny: tuple[JsonValue, ...] | None = None


class PermissionTable(_Strict):
    """A permission beyond the allow and deny pair that each command has."""

    identifier: str
    description: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    platforms: tuple[Target, ...] | None = None
    scope: ScopeTable = ScopeTable()


class SetTable(_Strict):
    """A named set of permissions and sets."""

    identifier: str
    description: str = ""
    permissions: tuple[str, ...]


class Manifest(_Strict):
    """One module's table, as its TOML file writes it; ``module`` "" is the app's.

    Each of ``commands`` has ``allow-<command>`` and ``deny-<command>``. ``default``
    and sets name permissions or sets of this module, or of another with its prefix.
    ``aliases`` are other names of commands.
    """

    module: str = ""
    commands: tuple[str, ...] = ()
    default: tuple[str, ...] = ()
    aliases: dict[str, str] = Field(default_factory=dict)
    set: tuple[SetTable, ...] = ()
    permission: tuple[PermissionTable, ...] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    """A permission as the resolver uses it; commands carry their module."""

    identifier: str
    module: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    platforms: tuple[str, ...] | None = None
    scope_allow: tuple[JsonValue, ...] | None = None
    scope_deny: tuple[JsonValue, ...] | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A manifest prepared for look-up by the name after the prefix."""

    name: str
    commands: frozenset[str]
    permissions: Mapping[str, Permission]
    sets: Mapping[str, tuple[str, ...]]
    aliases: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> Iterator[str]:
        """Yield every permission, set and ``default`` with its prefix."""
        for name in {DEFAULT, *self.permissions, *self.sets, *self._alias_names()}:
            yield qualify(self.name, name)

    def canonical(self, name: str) -> str:
        """The permission's name, whichever alias was used."""
        verb, dash, command = name.partition("-")
        if dash and verb in {"allow", "deny"} and command in self.aliases:
            return f"{verb}-{self.aliases[command]}"
        return name

    def _alias_names(self) -> Iterator[str]:
        for alias in self.aliases:
            yield f"allow-{alias}"
            yield f"deny-{alias}"


def prepare(manifest: Manifest) -> Module:
    """Check a manifest and write out what its short forms mean.

    Raises:
        ValueError: A name is malformed or given twice, or an alias leads nowhere.
    """
    permissions: dict[str, Permission] = {}
    for table in (*_pairs(manifest.commands), *manifest.permission):
        if table.identifier in permissions or table.identifier == DEFAULT:
            raise ValueError(f"permission {table.identifier!r} is defined twice")
        permissions[table.identifier] = _permission(manifest.module, table)
    sets = {table.identifier: table.permissions for table in manifest.set}
    if len(sets) < len(manifest.set) or sets.keys() & {DEFAULT, *permissions}:
        raise ValueError("a set has the name of another set or permission")
    if manifest.default:
        sets[DEFAULT] = manifest.default
    commands = frozenset(
        command
        for permission in permissions.values()
        for command in (*permission.allow, *permission.deny)
    )
    targets = {qualify(manifest.module, name) for name in manifest.aliases.values()}
    if targets - commands:
        unknown = sorted(targets - commands)
        raise ValueError(f"aliases lead to unknown commands: {unknown}")
    described = {t.identifier: t.description for t in manifest.set if t.description}
    named = (t for t in manifest.permission if t.description)
    described |= {t.identifier: t.description for t in named}
    module = Module(
        manifest.module, commands, permissions, sets, manifest.aliases, described
    )
    for name in module.names():
        parse_identifier(name)
    return module


def _pairs(commands: Iterable[str]) -> Iterator[PermissionTable]:
    for command in commands:
        yield PermissionTable(identifier=f"allow-{command}", allow=(command,))
        yield PermissionTable(identifier=f"deny-{command}", deny=(command,))


def _permission(module: str, table: PermissionTable) -> Permission:
    return Permission(
        identifier=qualify(module, table.identifier),
        module=module,
        allow=tuple(qualify(module, hyphens(command)) for command in table.allow),
        deny=tuple(qualify(module, hyphens(command)) for command in table.deny),
        platforms=table.platforms,
        scope_allow=table.scope.allow,
        scope_deny=table.scope.deny,
    )


def hyphens(command: str) -> str:
    """Write a command's underscores as hyphens."""
    return command.replace("_", "-")


def made(table: Mapping[str, Any], name: str) -> Module:
    """Make the module that a table describes.

    Raises:
        CapabilityError: It describes none.
    """
    try:
        return prepare(Manifest.model_validate(table))
    except ValidationError as error:
        findings = [
            Finding(problem.text, field=".".join(map(str, problem.path)), file=name)
            for problem in problems(error, table)
        ]
        raise CapabilityError(findings) from error
    except ValueError as error:
        raise CapabilityError([Finding(str(error), file=name)]) from error
