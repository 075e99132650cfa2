"""Resolution: capabilities and tables become, for one platform, records of commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .findings import CapabilityError, Finding, Json
from .labels import label_index, origin_index
from .manifests import Permission
from .model import Capability, Entry
from .tables import Tables
from .terms import LOCAL, PLATFORMS

MAX_RECORDS = 300_000
MAX_SHOWN = 1_000_000
NO_SCOPE = 0


class Record(NamedTuple):
    """A command allowed or denied by a permission of a capability.

    ``capability`` is an index into the active ones; ``scope`` an id, 0 without.
    """

    capability: int
    permission: str
    scope: int


class Scope(NamedTuple):
    """Scope values: deny has priority over allow."""

    allow: tuple[Json, ...] = ()
    deny: tuple[Json, ...] = ()

    @classmethod
    def joined(cls, scopes: Sequence[Scope]) -> Scope:
        """The union of any number, in order, in time that grows as they do."""
        return cls(
            tuple(value for scope in scopes for value in scope.allow),
            tuple(value for scope in scopes for value in scope.deny),
        )

    def as_json(self) -> dict[str, Json]:
        """The values as the resolved form shows them."""
        return {"allow": list(self.allow), "deny": list(self.deny)}


@dataclass(slots=True)
class Access:
    """What capabilities say of one command; ``bits`` are those that allow it."""

    allowed: dict[int, list[Record]] = field(default_factory=dict)
    denied: list[Record] = field(default_factory=list)
    bits: int = 0

    def records(self, bits: int | None = None) -> Iterator[Record]:
        """Yield what allows the command, of all capabilities or of these bits."""
        for index, records in self.allowed.items():
            if bits is None or bits >> index & 1:
                yield from records

    def first(self, bits: int) -> Record:
        """The first record of the first of these capabilities."""
        return self.allowed[(bits & -bits).bit_length() - 1][0]


class Resolved:
    """The capabilities that count on one platform, ready to decide by.

    Attributes:
        platform: The target.
        capabilities: The active capabilities in the order of their identifiers.
        inactive: The others, for explanations.
        commands: What is said of each command that is named at all.
        scopes: Command scopes by id, numbered from 1 in the order of their creation.
        globals: Each module's global scope.
    """

    def __init__(
        self, capabilities: Iterable[Capability], tables: Tables, platform: str
    ) -> None:
        """Resolve checked capabilities.

        Raises:
            CapabilityError: The platform is unknown, or there are too many records.
        """
        if platform not in PLATFORMS:
            known = ", ".join(PLATFORMS)
            problem = f"unknown platform {platform!r}; one of {known}"
            raise CapabilityError([Finding(problem, field="platform")])
        ordered = sorted(capabilities, key=lambda capability: capability.identifier)
        self.platform = platform
        self.tables = tables
        self.capabilities = tuple(c for c in ordered if c.active_on(platform))
        self.inactive = tuple(c for c in ordered if not c.active_on(platform))
        self.commands: dict[str, Access] = {}
        self.scopes: dict[int, Scope] = {}
        self._globals: dict[str, list[Scope]] = {}
        self._refuse_excess()
        for index, capability in enumerate(self.capabilities):
            self._resolve(index, capability)
        self.globals = {
            name: Scope.joined(found) for name, found in self._globals.items()
        }
        self._index()

    def _index(self) -> None:
        numbered = tuple((1 << i, c) for i, c in enumerate(self.capabilities))
        self.local_bits = sum(bit for bit, c in numbered if c.local)
        self.windows = label_index((g, bit) for bit, c in numbered for g in c.windows)
        self.webviews = label_index((g, bit) for bit, c in numbered for g in c.webviews)
        self.origins = origin_index((u, bit) for bit, c in numbered for u in c.remote)

    def _refuse_excess(self) -> None:
        size = sum(
            len(permissions)
            for capability in self.capabilities
            for _, permissions in self._expansion(capability)
        )
        if size > MAX_RECORDS:
            problem = f"the capabilities resolve to over {MAX_RECORDS} records"
            raise CapabilityError([Finding(problem)])

    def _expansion(
        self, capability: Capability
    ) -> Iterator[tuple[Entry, tuple[Permission, ...]]]:
        """Yield what each entry stands for; repeating it without a scope is idle."""
        plain: set[str] = set()
        for entry in capability.permissions:
            if entry.scoped or entry.identifier not in plain:
                yield entry, self.tables.expand(entry.identifier)
            if not entry.scoped:
                plain.add(entry.identifier)

    def _resolve(self, index: int, capability: Capability) -> None:
        recorded = capability.local or bool(capability.remote)
        for entry, permissions in self._expansion(capability):
            for permission in permissions:
                counts = permission.platforms
                if counts is None or self.platform in counts:
                    self._add(index, entry, permission, recorded=recorded)

    def _add(
        self, index: int, entry: Entry, permission: Permission, *, recorded: bool
    ) -> None:
        scope = _scope(entry, permission)
        if not permission.allow and not permission.deny:
            if scope is not None:
                self._globals.setdefault(permission.module, []).append(scope)
            return
        number = NO_SCOPE
        if scope is not None:
            number = len(self.scopes) + 1
            self.scopes[number] = scope
        if recorded:
            self._record(Record(index, permission.identifier, number), permission)

    def _record(self, record: Record, permission: Permission) -> None:
        for command in permission.allow:
            access = self.commands.get(command) or self.commands.setdefault(
                command, Access()
            )
            access.allowed.setdefault(record.capability, []).append(record)
            access.bits |= 1 << record.capability
        for command in permission.deny:
            self.commands.setdefault(command, Access()).denied.append(record)

    @cached_property
    def elsewhere(self) -> dict[str, tuple[str, str]]:
        """Commands that inactive capabilities allow: the capability, the permission."""
        found: dict[str, tuple[str, str]] = {}
        for capability in self.inactive:
            for entry in capability.permissions:
                for permission in self.tables.expand(entry.identifier):
                    for command in permission.allow:
                        source = capability.identifier, permission.identifier
                        found.setdefault(command, source)
        return found

    def as_json(self) -> dict[str, Json]:
        """The resolved form: one record per context, commands sorted by name.

        Raises:
            CapabilityError: It is too large to be shown.
        """
        self._refuse_vast()
        return {
            "platform": self.platform,
            "capabilities": [c.identifier for c in self.capabilities],
            "inactive": [c.identifier for c in self.inactive],
            "allowed": self._shown(denied=False),
            "denied": self._shown(denied=True),
            "scopes": {str(n): scope.as_json() for n, scope in self.scopes.items()},
            "global_scopes": {
                module: self.globals[module].as_json()
                for module in sorted(self.globals)
            },
        }

    def _refuse_vast(self) -> None:
        size = sum(
            self._size(record)
            for access in self.commands.values()
            for record in (*access.records(), *access.denied)
        )
        if size > MAX_SHOWN:
            problem = "the resolved form is too large to show; resolve fewer files"
            raise CapabilityError([Finding(problem)])

    def _size(self, record: Record) -> int:
        capability = self.capabilities[record.capability]
        labels = 1 + len(capability.windows) + len(capability.webviews)
        return (capability.local + len(capability.remote)) * labels

    def _shown(self, *, denied: bool) -> dict[str, Json]:
        shown: dict[str, Json] = {}
        for command in sorted(self.commands):
            access = self.commands[command]
            records = access.denied if denied else list(access.records())
            if records:
                shown[command] = [form for r in records for form in self._forms(r)]
        return shown

    def _forms(self, record: Record) -> Iterator[dict[str, Json]]:
        capability = self.capabilities[record.capability]
        for context in contexts(capability):
            yield {
                "capability": capability.identifier,
                "permission": record.permission,
                "context": context,
                "windows": list(capability.windows),
                "webviews": list(capability.webviews),
                "scope": record.scope or None,
            }


def contexts(capability: Capability) -> Iterator[Json]:
    """Yield ``"local"`` and ``{"remote": url}`` as the capability has them."""
    if capability.local:
        yield LOCAL
    for url in capability.remote:
        yield {"remote": url}


def _scope(entry: Entry, permission: Permission) -> Scope | None:
    own = permission.scope_allow is not None or permission.scope_deny is not None
    if not entry.scoped and not own:
        return None
    allow = (*(entry.allow or ()), *(permission.scope_allow or ()))
    return Scope(allow, (*(entry.deny or ()), *(permission.scope_deny or ())))
