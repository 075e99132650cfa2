"""Shell decisions: may this webview run this program so, and what would be run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from .decide import Decision, decide, matching
from .findings import Json, is_unicode
from .folders import Folders
from .resolve import Resolved, Scope
from .shell_scope import (
    SHELL,
    ShellEntry,
    UnusableEntry,
    Validator,
    entry_name,
    openable,
    parse_entry,
)
from .terms import EXECUTE, OPEN, RUNS, SPAWN, Caller, ShellCall

REMEMBERED = 256
OTHERS = ("shell:kill", "shell:stdin-write")


class ShellDecision(NamedTuple):
    """The answer, and when it is yes, what would be run."""

    allowed: bool
    reason: str
    argv: tuple[str, ...] | None = None
    capability: str | None = None
    permission: str | None = None

    def as_json(self) -> dict[str, Json]:
        """The decision as the HTTP interface shows it."""
        argv = None if self.argv is None else list(self.argv)
        return {"allowed": self.allowed, "reason": self.reason, "argv": argv}


class Programs:
    """The shell scopes of one resolution, read once for each set of capabilities."""

    def __init__(self, resolved: Resolved) -> None:
        self.resolved = resolved
        self._allowed: dict[tuple[str, int], dict[str, ShellEntry | str]] = {}

    @cached_property
    def denied(self) -> frozenset[str]:
        """The names that any scope of the shell denies, to every command, anywhere."""
        numbers = {
            record.scope
            for command in (EXECUTE, SPAWN, OPEN, *OTHERS)
            if (access := self.resolved.commands.get(command))
            for record in (*access.records(), *access.denied)
        }
        scopes = [self.resolved.scopes.get(number, Scope()) for number in numbers]
        scopes.append(self.resolved.globals.get(SHELL, Scope()))
        names = (entry_name(value) for scope in scopes for value in scope.deny)
        return frozenset(filter(None, names))

    def allowed(self, command: str, bits: int) -> dict[str, ShellEntry | str]:
        """The first scope entry of each name these capabilities bring along.

        An entry that cannot be used is the text of its problem.
        """
        key = command, bits
        found = self._allowed.get(key)
        if found is None:
            if len(self._allowed) >= REMEMBERED:
                self._allowed.clear()
            found = self._allowed[key] = self._first_of_each(command, bits)
        return found

    def _first_of_each(self, command: str, bits: int) -> dict[str, ShellEntry | str]:
        found: dict[str, ShellEntry | str] = {}
        for scope in self._scopes(command, bits):
            for value in scope.allow:
                name = entry_name(value)
                if name is not None and name not in found:
                    found[name] = _entry(value)
        return found

    def _scopes(self, command: str, bits: int) -> Iterator[Scope]:
        access = self.resolved.commands.get(command)
        for record in access.records(bits) if access else ():
            yield self.resolved.scopes.get(record.scope, Scope())
        yield self.resolved.globals.get(SHELL, Scope())


def decide_shell(
    programs: Programs, call: ShellCall, caller: Caller, folders: Folders
) -> ShellDecision:
    """Decide whether the caller may run a program of its scope with these arguments.

    Raises:
        CapabilityError: A label or the origin is not Unicode text.
    """
    command = programs.resolved.tables.command(call.command)
    if command not in RUNS:
        return _no(f"{call.command!r} runs no program; use {EXECUTE} or {SPAWN}")
    decision = decide(programs.resolved, command, caller)
    if not decision.allowed:
        return _no(decision.reason, decision)
    if call.name in programs.denied:
        return _no(f"a scope of the shell denies {call.name!r}", decision)
    labels, origins = matching(programs.resolved, caller)
    bits = programs.resolved.commands[command].bits & labels & origins
    entry = programs.allowed(command, bits).get(call.name)
    try:
        argv = _argv(_usable(entry, call), call, folders)
    except ValueError as error:
        return _no(str(error), decision)
    return ShellDecision(
        allowed=True,
        reason=f"{decision.reason}; its scope allows {call.name!r}",
        argv=argv,
        capability=decision.capability,
        permission=decision.permission,
    )


def decide_open(
    resolved: Resolved,
    path: str,
    caller: Caller,
    opens: bool | str = True,  # noqa: FBT001, FBT002 - the application's setting
) -> ShellDecision:
    """Decide whether the caller may open a link with the user's own program.

    ``opens`` is what the application's configuration says of links.

    Raises:
        CapabilityError: A label or the origin is not Unicode text.
    """
    decision = decide(resolved, OPEN, caller)
    if not decision.allowed:
        return _no(decision.reason, decision)
    if not is_unicode(path) or not openable(path, opens):
        kinds = "http, https, tel and mailto links only"
        what = kinds if opens is True else "what the application's configuration says"
        problem = f"{OPEN} opens {what}"
        return _no(problem, decision)
    return ShellDecision(
        allowed=True,
        reason=decision.reason,
        argv=(path,),
        capability=decision.capability,
        permission=decision.permission,
    )


def _no(reason: str, decision: Decision | None = None) -> ShellDecision:
    return ShellDecision(
        allowed=False,
        reason=reason,
        capability=decision.capability if decision else None,
        permission=decision.permission if decision else None,
    )


def _entry(value: Json) -> ShellEntry | str:
    try:
        return parse_entry(value)
    except ValueError as error:
        return str(error)


def _usable(entry: ShellEntry | str | None, call: ShellCall) -> ShellEntry:
    if entry is None:
        raise ValueError(f"no scope of {call.command} has the name {call.name!r}")
    if isinstance(entry, str):
        raise UnusableEntry(f"the scope entry {call.name!r} cannot be used: {entry}")
    if entry.sidecar and not call.sidecar:
        raise ValueError(f"{call.name!r} is a sidecar; call it as one")
    if call.sidecar and not entry.sidecar:
        raise ValueError(f"{call.name!r} is no sidecar; call it as a command")
    return entry


def _argv(entry: ShellEntry, call: ShellCall, folders: Folders) -> tuple[str, ...]:
    arguments = _arguments(entry, call)
    program = entry.name if entry.sidecar else folders.expand(entry.cmd)
    return (program, *arguments)


def _arguments(entry: ShellEntry, call: ShellCall) -> tuple[str, ...]:
    given = (call.args,) if isinstance(call.args, str) else tuple(call.args)
    for position, argument in enumerate(given, 1):
        if not is_unicode(argument) or "\0" in argument:
            raise ValueError(f"argument {position} is not text that a program can take")
    if entry.args is True:
        return given
    allowed = entry.args or ()
    if isinstance(call.args, str) and allowed:
        raise ValueError(f"{call.name!r} takes its arguments as an array")
    if not given and not any(isinstance(item, Validator) for item in allowed):
        return tuple(str(item) for item in allowed)
    return tuple(_positional(allowed, given))


def _positional(
    allowed: Sequence[str | Validator], given: Sequence[str]
) -> Iterator[str]:
    if len(given) > len(allowed):
        position = len(allowed) + 1
        raise ValueError(
            f"argument {position} {given[len(allowed)]!r} is one too many: "
            f"the scope allows {len(allowed)}"
        )
    for position, item in enumerate(allowed, 1):
        argument = given[position - 1] if position <= len(given) else None
        if isinstance(item, str):
            if argument not in (None, item):
                raise ValueError(f"argument {position} must be {item!r}")
            yield item
        elif argument is None:
            raise ValueError(f"argument {position} is missing")
        elif not item.accepts(argument):
            raise ValueError(
                f"argument {position} {argument!r} does not match the scope"
            )
        else:
            yield argument
