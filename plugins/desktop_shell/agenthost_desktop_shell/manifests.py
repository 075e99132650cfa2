"""Permission tables: what each module's commands, permissions and sets are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, JsonValue

from .identifiers import parse_identifier, qualify
from .terms import Target

DEFAULT = "default"
# The requirement has another name for one command of the framework.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "core:app": {"tauri-version": "framework-version"}
}


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


class Sides(_Table):
    """The commands that a permission allows and denies."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class ScopeTable(_Table):
    """Scope values that a permission itself brings along."""

    allow: tuple[JsonValue, ...] | None = None
    deny: tuple[JsonValue, ...] | None = None


class PermissionTable(_Table):
    """A permission, as the framework writes it."""

    identifier: str
    description: str | None = None
    commands: Sides | None = None
    platforms: tuple[Target, ...] | None = None
    scope: ScopeTable | None = None


class SetTable(_Table):
    """A named set of permissions and sets."""

    identifier: str = DEFAULT
    description: str | None = None
    permissions: tuple[str, ...] = ()


class Manifest(_Table):
    """One module's table in ``acl-manifests.json``.

    ``default_permission`` and sets name permissions or sets of this module, or of
    another with its prefix.
    """

    default_permission: SetTable | None = None
    permissions: dict[str, PermissionTable] | None = None
    permission_sets: dict[str, SetTable] | None = None

    def over(self, older: Manifest) -> Manifest:
        """This table, and what only the older one of the same module has."""
        return Manifest(
            default_permission=self.default_permission or older.default_permission,
            permissions={**(older.permissions or {}), **(self.permissions or {})},
            permission_sets={
                **(older.permission_sets or {}),
                **(self.permission_sets or {}),
            },
        )


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
    """A manifest prepared for look-up by the name after the prefix.

    ``aliases`` are other names of commands; ``source`` is the package and version
    whose table it is, where it came along.
    """

    name: str
    commands: frozenset[str]
    permissions: Mapping[str, Permission]
    sets: Mapping[str, tuple[str, ...]]
    aliases: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    def names(self) -> Iterator[str]:
        """Yield every permission, set and ``default`` with its prefix."""
        for name in {DEFAULT, *self.permissions, *self.sets, *self._alias_names()}:
            yield qualify(self.name, name)

    def canonical(self, name: str) -> str:
        """The permission's name, whichever alias was used."""
        return _canonical(self.aliases, name)

    def _alias_names(self) -> Iterator[str]:
        for alias in self.aliases:
            yield f"allow-{alias}"
            yield f"deny-{alias}"


def prepare(name: str, manifest: Manifest, source: str = "") -> Module:
    """Check a module's table and write commands as decisions have them.

    Raises:
        ValueError: A name is malformed or given twice.
    """
    permissions, sets = manifest.permissions or {}, dict(manifest.permission_sets or {})
    if sets.keys() & {DEFAULT, *permissions} or DEFAULT in permissions:
        raise ValueError("a set or permission has the name of another, or is 'default'")
    if manifest.default_permission is not None:
        sets[DEFAULT] = manifest.default_permission
    described: dict[str, PermissionTable | SetTable] = {**permissions, **sets}
    renamed = RENAMED.get(name, {})
    known = {
        _canonical(renamed, key): _permission(name, renamed, table)
        for key, table in permissions.items()
    }
    commands = frozenset(
        command for each in known.values() for command in (*each.allow, *each.deny)
    )
    module = Module(
        name,
        commands,
        known,
        {
            key: tuple(_canonical(renamed, member) for member in table.permissions)
            for key, table in sets.items()
        },
        {old: new for old, new in renamed.items() if qualify(name, new) in commands},
        {
            _canonical(renamed, key): table.description
            for key, table in described.items()
            if table.description
        },
        source,
    )
    for each in module.names():
        parse_identifier(each)
    return module


def _permission(
    module: str, renamed: Mapping[str, str], table: PermissionTable
) -> Permission:
    def full(command: str) -> str:
        name = hyphens(command)
        return qualify(module, renamed.get(name, name))

    sides, scope = table.commands or Sides(), table.scope or ScopeTable()
    return Permission(
        identifier=qualify(module, _canonical(renamed, table.identifier)),
        module=module,
        allow=tuple(map(full, sides.allow)),
        deny=tuple(map(full, sides.deny)),
        platforms=table.platforms,
        scope_allow=scope.allow,
        scope_deny=scope.deny,
    )


def _canonical(renamed: Mapping[str, str], name: str) -> str:
    verb, dash, command = name.partition("-")
    if dash and verb in {"allow", "deny"} and command in renamed:
        return f"{verb}-{renamed[command]}"
    return name


def hyphens(command: str) -> str:
    """Write a command's underscores as hyphens."""
    return command.replace("_", "-")
