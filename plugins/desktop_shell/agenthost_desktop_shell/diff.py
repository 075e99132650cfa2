"""What a change to capabilities newly allows, or no longer allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from .findings import Json
from .globs import is_literal, matches
from .policy import Policy
from .resolve import Record, Resolved, Scope
from .shell import Programs
from .shell_scope import entry_name
from .terms import LOCAL, PLATFORMS, RUNS

RISKY = (
    "shell:execute",
    "shell:spawn",
    "fs:write",
    "fs:remove",
    "fs:rename",
    "process:",
    "sql:execute",
    "updater:install",
)


class Grant(NamedTuple):
    """One thing that is allowed: a command to a label from an origin.

    ``side`` is ``window`` or ``webview``; ``scope`` is the JSON of the scope that
    comes along, for the shell one program's entry.
    """

    command: str
    side: str
    label: str
    origin: str
    scope: str

    def covers(self, other: Grant) -> bool:
        """Tell whether this grant allows all that the other does."""
        same = self._replace(label="") == other._replace(label="")
        return same and _includes(self.label, other.label)

    def __str__(self) -> str:
        scope = f" scope {self.scope}" if self.scope else ""
        return f"{self.command} to {self.side} {self.label!r} from {self.origin}{scope}"


class Change(NamedTuple):
    """A grant that came or went, and the platforms where it did."""

    allowed: bool
    grant: Grant
    platforms: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """The change as ``--json`` shows it."""
        scope = json.loads(self.grant.scope) if self.grant.scope else None
        return {
            "allowed": self.allowed,
            **self.grant._asdict(),
            "scope": scope,
            "platforms": list(self.platforms),
        }


def risk(grant: Grant) -> bool:
    """Whether a grant deserves a second look: programs, remote pages, all windows."""
    wide = grant.label in {"*", "**"} or grant.origin != LOCAL
    return wide or grant.command.startswith(RISKY)


def compare(
    old: Callable[[str], Policy], new: Callable[[str], Policy]
) -> tuple[Change, ...]:
    """List what the new policy allows and the old did not, and the reverse.

    Each is asked for its policy on a platform.

    A grant that another one already covers is no change: replacing ``main`` by ``*``
    takes nothing away.
    """
    changes: dict[tuple[bool, Grant], list[str]] = {}
    for platform in PLATFORMS:
        before, after = (
            frozenset(_grants(p(platform).on(platform))) for p in (old, new)
        )
        for allowed, here, there in ((True, after, before), (False, before, after)):
            for grant in _uncovered(here, there):
                changes.setdefault((allowed, grant), []).append(platform)
    return tuple(
        Change(allowed, grant, tuple(platforms))
        for (allowed, grant), platforms in sorted(
            changes.items(), key=lambda item: (item[0][1], item[0][0])
        )
    )


def _uncovered(here: frozenset[Grant], there: frozenset[Grant]) -> Iterator[Grant]:
    by_command: dict[str, list[Grant]] = {}
    for grant in there:
        by_command.setdefault(grant.command, []).append(grant)
    for grant in here - there:
        if not any(g.covers(grant) for g in by_command.get(grant.command, ())):
            yield grant


def _grants(resolved: Resolved) -> Iterator[Grant]:
    programs = Programs(resolved)
    for command, access in resolved.commands.items():
        if access.denied:
            continue
        for record in access.records():
            for scope in _scopes(programs, command, record):
                for side, label, origin in _places(resolved, record):
                    yield Grant(command, side, label, origin, scope)


def _places(resolved: Resolved, record: Record) -> Iterator[tuple[str, str, str]]:
    capability = resolved.capabilities[record.capability]
    origins = [LOCAL] if capability.local else []
    for origin in (*origins, *capability.remote):
        for label in capability.windows:
            yield "window", label, origin
        for label in capability.webviews:
            yield "webview", label, origin


def _scopes(programs: Programs, command: str, record: Record) -> Iterable[str]:
    scope = programs.resolved.scopes.get(record.scope, Scope())
    if command not in RUNS:
        return [_text(scope.as_json())] if scope.allow or scope.deny else [""]
    denied = programs.denied
    entries = (*scope.allow, *programs.resolved.globals.get("shell", Scope()).allow)
    return [_text(entry) for entry in entries if entry_name(entry) not in denied]


def _text(value: Json) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _includes(wide: str, narrow: str) -> bool:
    """Tell whether one glob surely matches every label that the other matches."""
    if wide in {narrow, "*", "**"}:
        return True
    if is_literal(narrow):
        return matches(wide, narrow)
    simple = not set("?[").intersection(wide + narrow) and "**" not in wide + narrow
    # A star of the narrow glob can only be swallowed whole by a star of the wide one.
    return simple and matches(wide, narrow.replace("*", "\x00"))
