"""Suggestions: the smallest permissions that let through what was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from .decide import records_for
from .findings import Json
from .identifiers import qualify
from .manifests import Permission
from .model import Capability, Entry
from .policy import Policy
from .project import Project
from .resolve import Record, Resolved, Scope
from .shell_scope import SHELL, entry_name
from .tables import Tables
from .terms import RUNS, Caller


class Ask(NamedTuple):
    """A call that a webview made: whose, on which platform, of which command.

    ``program`` is the name that the shell's scope has for what was to run.
    """

    caller: Caller
    command: str
    platform: str
    program: str = ""

    def as_json(self) -> dict[str, Json]:
        """The call as the report shows it."""
        rest = {k: v for k, v in self._asdict().items() if k != "caller"}
        return {**self.caller._asdict(), **rest}


class Suggested(NamedTuple):
    """What a capability needs: ``permissions`` as a file writes them.

    ``unused`` has, for each entry that grants more than was asked for, the commands
    and programs that nobody asked for. ``judged`` is false where the capability counts
    on no platform that was recorded, or is not selected, so that it stays as it is.
    """

    capability: Capability
    permissions: tuple[Json, ...]
    unused: Mapping[str, tuple[str, ...]]
    judged: bool = True

    def as_json(self) -> dict[str, Json]:
        """The capability as the report shows it."""
        return {
            "identifier": self.capability.identifier,
            "file": self.capability.file,
            "judged": self.judged,
            "permissions": list(self.permissions),
            "unused": {name: list(rest) for name, rest in self.unused.items()},
        }

    def written(self) -> dict[str, Json]:
        """The capability as a file holds it, with the permissions that it needs."""
        capability = self.capability
        fields: dict[str, Json] = {
            "identifier": capability.identifier,
            "description": capability.description,
            "local": None if capability.local else False,
            "remote": {"urls": list(capability.remote)} if capability.remote else None,
            "windows": list(capability.windows),
            "webviews": list(capability.webviews),
        }
        named = {key: value for key, value in fields.items() if value not in (None, "")}
        shown = {key: value for key, value in named.items() if value != []}
        if capability.platforms is not None:
            shown["platforms"] = list(capability.platforms)
        return {**shown, "permissions": list(self.permissions)}


class Suggestion(NamedTuple):
    """What each capability needs, and the asks that nothing allows."""

    capabilities: tuple[Suggested, ...]
    refused: tuple[Ask, ...]


Leaf = tuple[str, bool]
"""A permission that is no set, and whether it was met with a scope."""


class _Need(NamedTuple):
    """What was asked of one capability: commands and programs by leaf."""

    commands: dict[Leaf, set[str]]
    programs: dict[str, set[str]]


class _Kept(NamedTuple):
    """What becomes of an entry: as files write it, and what nobody asked for."""

    written: tuple[Json, ...] = ()
    unused: tuple[str, ...] = ()


def suggest(project: Project, asks: Iterable[Ask]) -> Suggestion:
    """Find the smallest permissions that still allow every ask that is allowed now.

    Nothing is allowed that was not: an entry becomes the identifiers of the commands
    that were asked for, with its scope, or goes. What denies, and a permission with a
    scope of its own, stays as it is written.

    Raises:
        CapabilityError: A file cannot be used, or an ask is not Unicode text.
    """
    asked = list(dict.fromkeys(asks))
    policies = {p: project.policy(p) for p in {ask.platform for ask in asked}}
    needs: dict[str, _Need] = {}
    refused = [ask for ask in asked if not _note(policies[ask.platform], ask, needs)]
    used = {c for n in needs.values() for found in n.commands.values() for c in found}
    counting = {c.identifier for p in policies for c in policies[p].on(p).capabilities}
    found = []
    for capability in project.report.checked():
        if capability.identifier in counting:
            need = needs.get(capability.identifier, _Need({}, {}))
            found.append(_Narrowing(capability, need, used, project.tables).result())
        else:
            same = tuple(_written(entry) for entry in capability.permissions)
            found.append(Suggested(capability, same, {}, judged=False))
    return Suggestion(tuple(found), tuple(refused))


def _note(policy: Policy, ask: Ask, needs: dict[str, _Need]) -> bool:
    """Note what lets an ask through; False when nothing does."""
    resolved = policy.on(ask.platform)
    command = policy.tables.command(ask.command)
    if not policy.decide(command, *ask.caller, ask.platform).allowed:
        return False
    if command not in resolved.commands:
        # What every page may call needs no permission.
        return True
    records = list(records_for(resolved, command, ask.caller))
    if command in RUNS:
        records = list(_running(resolved, records, ask.program))[:1]
    else:
        # The scopes of all that allow a command add up: each of them is needed.
        records = [r for r in records if r.scope] or records[:1]
    for record in records:
        name = resolved.capabilities[record.capability].identifier
        need = needs.setdefault(name, _Need({}, {}))
        leaf = record.permission, bool(record.scope)
        need.commands.setdefault(leaf, set()).add(command)
        need.programs.setdefault(record.permission, set()).add(ask.program)
    return bool(records)


def _running(
    resolved: Resolved, records: Iterable[Record], program: str
) -> Iterator[Record]:
    """Yield the records with whose scope, or the module's, the program may run."""
    common = resolved.globals.get(SHELL, Scope())
    for record in records:
        scope = resolved.scopes.get(record.scope, Scope())
        if any(entry_name(each) == program for each in (*scope.allow, *common.allow)):
            yield record


class _Narrowing:
    """One capability made smaller; ``used`` are the commands that anybody needs."""

    def __init__(
        self, capability: Capability, need: _Need, used: set[str], tables: Tables
    ) -> None:
        self._capability = capability
        self._need = need
        self._used = used
        self._tables = tables

    def result(self) -> Suggested:
        """What is left of the capability."""
        plain = self._plain()
        written: list[Json] = [*plain]
        unused: dict[str, tuple[str, ...]] = {}
        for entry in self._capability.permissions:
            kept = self._kept(entry)
            written += [each for each in kept.written if each not in written]
            if kept.unused:
                unused[entry.identifier] = kept.unused
        return Suggested(self._capability, tuple(written), unused)

    def _kept(self, entry: Entry) -> _Kept:
        leaves = self._tables.expand(entry.identifier)
        granted = {command for leaf in leaves for command in leaf.allow}
        modules = {command.rpartition(":")[0] for command in self._used}
        bare = not granted and any(leaf.module in modules for leaf in leaves)
        needed = bare or granted & self._used
        denies = entry.deny or any(leaf.deny or leaf.scope_deny for leaf in leaves)
        own = bare or any(leaf.scope_allow is not None for leaf in leaves)
        if denies or (needed and own):
            return _Kept((_written(entry),))
        if not needed:
            return _Kept((), _told(entry, granted))
        if not entry.scoped:
            asked = {c for leaf in leaves for c in self._asked(leaf, scoped=False)}
            return _Kept((), tuple(sorted(granted - asked)))
        if granted <= RUNS and all(leaf.allow for leaf in leaves):
            return self._programs(entry, leaves)
        # Without one of the scopes that add up the others might let more through; that
        # of a permission without commands is the whole module's.
        wanted = self._used
        kept = [leaf for leaf in leaves if not leaf.allow or wanted & {*leaf.allow}]
        if len(kept) == len(leaves):
            return _Kept((_written(entry),))
        scoped = tuple(_written(entry, leaf.identifier) for leaf in kept)
        return _Kept(scoped, _told(entry, granted - self._used))

    def _programs(self, entry: Entry, leaves: Iterable[Permission]) -> _Kept:
        """Keep of a scope of the shell the programs that were run."""
        written: list[Json] = []
        ran: set[str] = set()
        for leaf in leaves:
            if self._asked(leaf, scoped=True):
                names = self._need.programs[leaf.identifier]
                allow = [v for v in entry.allow or () if entry_name(v) in names]
                written += [{"identifier": leaf.identifier, "allow": allow}]
                ran |= names
        named = {str(entry_name(value)) for value in entry.allow or ()}
        return _Kept(tuple(written), tuple(sorted(named - ran)))

    def _asked(self, leaf: Permission, *, scoped: bool) -> set[str]:
        return self._need.commands.get((leaf.identifier, scoped), set())

    def _plain(self) -> list[str]:
        """Name what the entries without any scope become."""
        found: list[str] = []
        wanted: dict[str, str] = {}
        for entry in self._capability.permissions:
            for leaf in () if entry.scoped else self._tables.expand(entry.identifier):
                asked = self._asked(leaf, scoped=False)
                if asked and leaf.platforms is not None:
                    found.append(leaf.identifier)
                elif asked:
                    wanted |= dict.fromkeys(asked, leaf.identifier)
        return sorted({*found, *self._cover(wanted)})

    def _cover(self, wanted: dict[str, str]) -> Iterator[str]:
        """Yield the fewest identifiers of these commands alone, as far as one sees.

        A command that has no identifier to itself brings the leaf that allowed it.
        """
        open_ = set(wanted)
        choices = dict(_choices(self._tables, open_))
        present = {entry.identifier for entry in self._capability.permissions}
        while open_:
            name = min(
                choices,
                key=lambda n: (-len(choices[n] & open_), n not in present, len(n), n),
                default="",
            )
            if not name or not choices[name] & open_:
                yield from sorted({wanted[command] for command in open_})
                return
            open_ -= choices.pop(name)
            yield name


def _choices(tables: Tables, wanted: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield what grants nothing beyond these commands, and the commands of each."""
    for module in tables.modules.values():
        for name in (*module.permissions, *module.sets):
            identifier = qualify(module.name, name)
            leaves = tables.expand(identifier)
            granted = {command for leaf in leaves for command in leaf.allow}
            if granted and granted <= wanted and all(map(_is_plain, leaves)):
                yield identifier, granted


def _is_plain(leaf: Permission) -> bool:
    """Whether a leaf allows commands everywhere, and says nothing else."""
    scope = leaf.scope_allow is not None or leaf.scope_deny is not None
    return bool(leaf.allow) and not leaf.deny and leaf.platforms is None and not scope


def _written(entry: Entry, identifier: str = "") -> Json:
    """An entry as a file writes it."""
    name = identifier or entry.identifier
    scope = {"allow": entry.allow, "deny": entry.deny}
    given = {key: list(value) for key, value in scope.items() if value is not None}
    return {"identifier": name, **given} if given else name


def _told(entry: Entry, commands: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(commands)) or (entry.identifier,)
