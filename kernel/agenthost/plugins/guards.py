"""Guard points: one frozen case each, one synchronous verdict.

The kernel builds a case at exactly one place a point and asks every guard that a
healthy security system filled in; the first verdict that is not Allow decides. At the
points of ``FAIL_CLOSED`` the answer is Deny while nobody guards them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from ..context import Context, Principal
from ..errors import AgentHostError, Blocked
from ..ports import Port


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


FAIL_CLOSED = frozenset({Guard.PATH, Guard.URL, Guard.ADDRESS, Guard.SPAWN})


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
    """Go on with another value: the tool result's text."""

    value: str


Verdict = Allow | Deny | Replace
ALLOW = Allow()


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
    """A tool's outcome before the model reads it, asked by the turn engine."""

    context: Context
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class PathCase:
    """A path relative to an agent's workspace, asked by the backend of FILES."""

    path: PurePosixPath
    write: bool


@dataclass(frozen=True, slots=True)
class UrlCase:
    """A URL about to be requested (each redirect anew), asked by the egress client.

    ``allowed_hosts`` are names and addresses the operator configured by hand.
    """

    scheme: str
    host: str
    port: int
    allowed_hosts: frozenset[str]


@dataclass(frozen=True, slots=True)
class AddressCase:
    """An address about to be connected to, asked by the egress transport's socket."""

    host: str
    address: str
    port: int
    allowed_hosts: frozenset[str]


GuardFunction = Callable[[Any], Verdict]


@dataclass(frozen=True, slots=True)
class SecuritySystem:
    """A named protection: the points it fills and how it proves itself.

    Args:
        name: As shown by ``/api/security``.
        guards: A synchronous function of the point's case for each point it fills.
        self_test: Raises when the protection does not work; run off the loop.
        proves_on: The port whose backend's ``open`` the self-test is called with, for
            a protection that shows itself only in the backend that is used.
    """

    name: str
    guards: Mapping[Guard, GuardFunction]
    self_test: Callable[..., None]
    proves_on: Port | None = None


class Guards:
    """The compiled guard points of one daemon."""

    def __init__(self, systems: Iterable[SecuritySystem] = ()) -> None:
        self.compile(systems)

    def compile(self, systems: Iterable[SecuritySystem]) -> None:
        """Take the guards of these systems and forget all others."""
        healthy = tuple(systems)
        self._points = {
            point: tuple(s.guards[point] for s in healthy if point in s.guards)
            for point in Guard
        }

    def filled(self, point: Guard) -> bool:
        """Tell whether anyone guards the point, so that a case is worth building."""
        return bool(self._points[point])

    def check(self, point: Guard, case: Any) -> None:
        """Ask a point that can only allow or refuse.

        Raises:
            AgentHostError: The error a guard's Deny names (Blocked unless it says).
        """
        self.replace(point, case, "")

    def replace(self, point: Guard, case: Any, value: str) -> str:
        """Ask a point whose value a guard may replace; return the value to use.

        Raises:
            AgentHostError: The error a guard's Deny names (Blocked unless it says).
        """
        guards = self._points[point]
        if not guards and point in FAIL_CLOSED:
            raise Blocked(
                f"no security system guards {point!r}; enable the security plugins"
            )
        for guard in guards:
            verdict = guard(case)
            if isinstance(verdict, Deny):
                raise verdict.error(verdict.reason)
            if isinstance(verdict, Replace):
                value = verdict.value
        return value
