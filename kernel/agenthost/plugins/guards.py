"""Guard points: one frozen case each, one synchronous verdict.

The kernel builds a case at exactly one place a point. Guards decide: each is asked in
turn until one refuses, and sees what those before it have replaced. Watchers are told
of the outcome and decide nothing. Nothing but a verdict allows: a point is closed, and
refuses everything, while a system it requires is not active or one that guards it has
failed.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, TypeVar

from ..context import Context, Principal
from ..errors import AgentHostError, Blocked, PluginError
from ..ports.approvals import Ask, Asked
from ..ports.backend import Backend
from .calls import describe


class Guard(StrEnum):
    """The points that exist; each is asked at the place its case names."""

    REQUEST = "request"
    MANIFEST = "manifest"
    SPAWN = "spawn"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    PATH = "path"
    URL = "url"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Allow:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse; ``reason`` names the remedy. ``error`` is what is raised."""

    reason: str
    error: type[AgentHostError] = Blocked


@dataclass(frozen=True, slots=True)
class Replace:
    """Go on with another ``text`` in the case, where the point is replaceable."""

    value: str


Verdict = Allow | Deny | Replace | Ask
ALLOW: Verdict = Allow()


@dataclass(frozen=True, slots=True)
class RequestCase:
    """An HTTP request or WebSocket upgrade, asked by the ASGI layer before routing.

    ``cost`` is the route's rate cost in units; ``client`` the peer's address.
    """

    method: str
    path: str
    client: str
    cost: int


@dataclass(frozen=True, slots=True)
class ManifestCase:
    """A manifest before an agent is made or changed; asked off the loop."""

    principal: Principal
    manifest_toml: str
    name: str


@dataclass(frozen=True, slots=True)
class SpawnCase:
    """An agent about to come into being, asked by the agent registry.

    ``grants`` are the rights its manifest asks for, by action.
    """

    principal: Principal
    name: str
    grants: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ToolCallCase:
    """A tool call about to start, asked by the turn engine."""

    context: Context
    tool: str
    effect: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResultCase:
    """What a tool says, errors too, before the model reads it; asked by the engine."""

    context: Context
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class PathCase:
    """A path relative to an agent's workspace, asked by the backend of FILES.

    ``context`` is whose turn it is for, None where no turn is the cause.
    """

    path: PurePosixPath
    write: bool
    context: Context | None = None


@dataclass(frozen=True, slots=True)
class UrlCase:
    """A URL about to be requested (each redirect anew), asked by the egress client.

    ``allowed_hosts`` are names and addresses the operator configured by hand;
    ``context`` is whose turn it is for, None where no turn is the cause.
    """

    scheme: str
    host: str
    port: int
    allowed_hosts: frozenset[str]
    context: Context | None = None


@dataclass(frozen=True, slots=True)
class AddressCase:
    """An address about to be connected to, asked by the egress transport's socket.

    ``context`` is that of the request that opens the connection; requests that use it
    again are asked at ``url`` alone.
    """

    host: str
    address: str
    port: int
    allowed_hosts: frozenset[str]
    context: Context | None = None


@dataclass(frozen=True, slots=True)
class GuardPoint:
    """A place where guards are asked.

    Args:
        name: What guards name it by.
        case: The type of what they are asked.
        what: What it lets pass or refuses, in the words of a refusal.
        requires: The security systems without which it refuses everything.
        replaceable: Whether a guard may put another ``text`` into the case.
        asks: Whether a guard may have a person asked.
        effects: Whether what follows reaches beyond the conversation (files, the
            network, new agents). Such a point also refuses everything while a security
            plugin has failed before it said what it guards.
    """

    name: Guard
    case: type
    what: str
    requires: tuple[str, ...] = ()
    replaceable: bool = False
    asks: bool = False
    effects: bool = False

    def refusal(self, system: str, reason: str) -> str:
        """Say that everything is refused here for want of a system, and the remedy."""
        return (
            f"{self.what} is refused: the security system {system} is not active"
            f" ({reason}); enable or mend its plugin and restart"
        )


_SPAWN = ("capability_inheritance_validation",)
_PATH = ("path_traversal_prevention",)
_SSRF = ("ssrf_protection",)
_ALL = (
    GuardPoint(Guard.REQUEST, RequestCase, "the request"),
    GuardPoint(Guard.MANIFEST, ManifestCase, "the manifest"),
    GuardPoint(Guard.SPAWN, SpawnCase, "the agent", _SPAWN, effects=True),
    GuardPoint(Guard.TOOL_CALL, ToolCallCase, "the tool call", asks=True),
    GuardPoint(Guard.TOOL_RESULT, ToolResultCase, "the result", replaceable=True),
    GuardPoint(Guard.PATH, PathCase, "file access", _PATH, effects=True),
    GuardPoint(Guard.URL, UrlCase, "the outbound request", _SSRF, effects=True),
    GuardPoint(Guard.ADDRESS, AddressCase, "the connection", _SSRF, effects=True),
)
POINTS: Mapping[Guard, GuardPoint] = {point.name: point for point in _ALL}

Case = TypeVar("Case")
GuardFunction = Callable[[Any], Verdict]
Watcher = Callable[[Any, Verdict], object]
_Asked = tuple[tuple[tuple[str, GuardFunction], ...], tuple[tuple[str, Watcher], ...]]


@dataclass(frozen=True, slots=True)
class SecuritySystem:
    """A named protection: the points it fills and how it proves itself.

    Args:
        name: As shown by ``/api/security``.
        guards: A synchronous function of the point's case for each point it fills.
        self_test: Raises when the protection does not work; run off the loop.
        proves_on: The class of backends of a port, for a protection that shows itself
            only in the backend that is used: the self-test is called with its ``open``.
        observes: A synchronous function for each point it watches, told of the case as
            it was asked and the verdict of all guards. What it returns is ignored.

    Raises:
        PluginError: One of its points does not exist.
    """

    name: str
    guards: Mapping[Guard, GuardFunction]
    self_test: Callable[..., None]
    proves_on: type[Backend] | None = None
    observes: Mapping[Guard, Watcher] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := {*self.guards, *self.observes} - set(Guard):
            raise PluginError(f"{self.name}: there is no guard point {min(unknown)!r}")


Systems = Sequence[SecuritySystem]
Fail = Callable[[str, str], object]


class Guards:
    """The compiled guard points of one daemon.

    Args:
        systems: The active ones.
        fail: Told of a system, by name, that broke its contract, and how.

    Attributes:
        closed: The points that refuse everything, each with its reason.
    """

    def __init__(self, systems: Systems = (), fail: Fail = lambda *_: None) -> None:
        self._fail = fail
        self.compile(systems)

    def compile(self, active: Systems, failed: Systems = ()) -> None:
        """Ask the guards of these systems from now on, and no others.

        Args:
            active: The systems to ask.
            failed: Systems that cannot be asked: what they guard is closed.
        """
        closed: dict[Guard, str] = {}
        for name, point in POINTS.items():
            broken = [system.name for system in failed if name in system.guards]
            filled = {system.name for system in active if name in system.guards}
            lacking = broken + [s for s in point.requires if s not in filled]
            if lacking:
                reason = "it has failed" if broken else "no enabled plugin offers it"
                closed[name] = point.refusal(lacking[0], reason)
        self.closed: Mapping[Guard, str] = closed
        self._points = {p: _asked(p, active, closed.get(p)) for p in POINTS}

    def filled(self, point: Guard) -> bool:
        """Tell whether the point is to be asked, so that a case is worth building."""
        return self._points[point] is not None

    def check(self, point: Guard, case: Case) -> Case:
        """Ask a point, tell its watchers, and return the case as the guards leave it.

        Raises:
            AgentHostError: The error a guard's Deny names (Blocked unless it says).
            Asked: Nobody denies it, and people are to be asked first.
        """
        if (asked := self._points[point]) is None:
            return case
        guards, watchers = asked
        left, verdict = case, ALLOW
        asks: list[Ask] = []
        for name, guard in guards:
            answer = self._answer(point, name, guard, left)
            if isinstance(answer, Allow):
                continue
            verdict = answer
            if isinstance(answer, Deny):
                break
            if isinstance(answer, Ask):
                asks.append(answer)
                continue
            left = replace(left, text=answer.value)  # type: ignore[type-var]  # reason: every case is a dataclass
        for name, watcher in watchers:
            try:
                watcher(case, verdict)
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                self._fail(name, f"its watcher of {point} raised {describe(error)}")
        if isinstance(verdict, Deny):
            raise verdict.error(verdict.reason)
        if asks:
            raise Asked(asks)
        return left

    def _answer(
        self, point: Guard, name: str, ask: GuardFunction, case: Any
    ) -> Verdict:
        """Ask one guard; whatever is no verdict there refuses, and fails its system."""
        try:
            answer = ask(case)
        except CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            fault = f"raised {describe(error)}"
        else:
            match answer:
                case Allow() | Deny():
                    return answer
                case Replace(str()) if POINTS[point].replaceable:
                    return answer
                case Ask() if POINTS[point].asks:
                    return answer
            fault = f"answered {type(answer).__name__}, which is no verdict there"
            if inspect.iscoroutine(answer):
                answer.close()
        self._fail(name, f"its guard of {point} {fault}")
        return Deny(POINTS[point].refusal(name, "it has failed"))


def _asked(point: Guard, systems: Systems, closed: str | None) -> _Asked | None:
    guards = tuple((s.name, s.guards[point]) for s in systems if point in s.guards)
    told = tuple((s.name, s.observes[point]) for s in systems if point in s.observes)
    if closed is not None:
        guards = (("", lambda _: Deny(closed)),)
    return (guards, told) if guards or told else None


def stand_in(name: str) -> SecuritySystem:
    """Stand in for what failed before it said what it guards: it may be any effect."""
    points = [point.name for point in POINTS.values() if point.effects]
    refuse: GuardFunction = lambda _: Deny(f"{name} has failed")  # noqa: E731
    return SecuritySystem(name, dict.fromkeys(points, refuse), lambda: None)
