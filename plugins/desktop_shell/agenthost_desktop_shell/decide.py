"""Decisions: may this webview call this command, and which capability says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .findings import CapabilityError, Finding, Json
from .resolve import Access, Record, Resolved, Scope
from .terms import LOCAL, Caller

CHANNEL = "__TAURI_CHANNEL__:fetch"


class Decision(NamedTuple):
    """The answer: what decided it, or the nearest miss."""

    allowed: bool
    reason: str
    capability: str | None = None
    permission: str | None = None

    def as_json(self) -> dict[str, Json]:
        """The decision as the HTTP interface shows it."""
        return self._asdict()


def decide(resolved: Resolved, command: str, caller: Caller) -> Decision:
    """Decide whether the caller may invoke the command.

    A denial by any active capability refuses everywhere; otherwise some capability
    must allow the command to the caller's origin and to its window or webview.

    Raises:
        CapabilityError: A label or the origin is not Unicode text.
    """
    access = resolved.commands.get(command)
    if access is None:
        command = resolved.tables.command(command)
        access = resolved.commands.get(command)
    if access is None:
        return _unmentioned(resolved, command, caller)
    if access.denied:
        return _decision(
            resolved, access.denied[0], f"{command} is denied", allowed=False
        )
    labels, origins = matching(resolved, caller)
    bits = access.bits & labels & origins
    if not bits:
        return _miss(resolved, access, command, (labels, origins))
    record = access.first(bits)
    return _decision(resolved, record, f"{command} is allowed", allowed=True)


def matching(resolved: Resolved, caller: Caller) -> tuple[int, int]:
    """The bits of the capabilities that meet the caller's labels, and its origin.

    Raises:
        CapabilityError: A label or the origin is not Unicode text.
    """
    window, webview, origin = caller
    try:
        labels = resolved.windows(window) | resolved.webviews(
            window if webview is None else webview
        )
        if origin == LOCAL:
            return labels, resolved.local_bits
        return labels, resolved.origins(origin)
    except (UnicodeEncodeError, TypeError) as error:
        problem = "labels and origins must be Unicode text"
        raise CapabilityError([Finding(problem)]) from error


def records_for(resolved: Resolved, command: str, caller: Caller) -> Iterator[Record]:
    """Yield the records that allow the command to the caller."""
    access = resolved.commands.get(command)
    if access is not None and not access.denied:
        labels, origins = matching(resolved, caller)
        yield from access.records(access.bits & labels & origins)


def command_scope(resolved: Resolved, command: str, caller: Caller) -> Scope:
    """The union of the scopes of all records that allow the command to the caller."""
    records = records_for(resolved, resolved.tables.command(command), caller)
    return Scope.joined([resolved.scopes.get(r.scope, Scope()) for r in records])


def scope_allows(scope: Scope, accepts: Callable[[Json], bool]) -> bool:
    """Apply a plugin's own test to a scope: no deny, and any allow if there is one."""
    if any(map(accepts, scope.deny)):
        return False
    return not scope.allow or any(map(accepts, scope.allow))


def _decision(
    resolved: Resolved, record: Record, verdict: str, *, allowed: bool
) -> Decision:
    name = resolved.capabilities[record.capability].identifier
    reason = f"{verdict} by {record.permission} in capability {name!r}"
    return Decision(allowed, reason, name, record.permission)


def _unmentioned(resolved: Resolved, command: str, caller: Caller) -> Decision:
    if command == CHANNEL:
        return Decision(allowed=True, reason=f"{command} is part of every answer")
    if ":" not in command and "" not in resolved.tables.modules:
        reason = f"{command}: the application has no permission table; its local pages"
        if caller.origin == LOCAL:
            return Decision(allowed=True, reason=f"{reason} may call all its commands")
        return _refused(f"{reason} alone may call its commands")
    if command not in resolved.tables.commands:
        return _refused(f"no permission table has the command {command!r}")
    if command in resolved.elsewhere:
        name, permission = resolved.elsewhere[command]
        reason = f"nearest miss: capability {name!r} allows {command}, but not on "
        return _refused(reason + resolved.platform, name, permission)
    return _refused(f"no capability grants {command}")


def _refused(
    reason: str, capability: str | None = None, permission: str | None = None
) -> Decision:
    return Decision(
        allowed=False, reason=reason, capability=capability, permission=permission
    )


def _miss(
    resolved: Resolved, access: Access, command: str, met: Sequence[int]
) -> Decision:
    labels, origins = met
    for bits, what in (
        (access.bits & labels, "to this window or webview, but not to this origin"),
        (access.bits & origins, "to this origin, but to no such window or webview"),
        (access.bits, "to other windows, webviews and origins"),
    ):
        if bits:
            record = access.first(bits)
            name = resolved.capabilities[record.capability].identifier
            reason = f"nearest miss: capability {name!r} allows {command} {what}"
            return _refused(reason, name, record.permission)
    return _refused(f"no capability grants {command}")
