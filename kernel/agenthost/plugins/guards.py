"""Guards: one frozen case each, one synchronous verdict.

Each point is asked at exactly one place. Guards decide: each is asked in turn until one
refuses, and sees what those before it have replaced. Watchers are told of the outcome
and decide nothing. Nothing but a verdict allows: a point is closed, and refuses
everything, while a system it requires is not active, one that guards it has failed, or
the plugin that offers it is gone.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import AgentHostError, Blocked
from ..ports.backend import Backend
from .calls import describe
from .points import KNOWN, Case, GuardPoint


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


Verdict = Allow | Deny | Replace
ALLOW: Verdict = Allow()


GuardFunction = Callable[[Any], Verdict]
Watcher = Callable[[Any, Verdict], object]
Point = str | GuardPoint[Any]
"""A point, or the name of one: its plugin need not be installed."""
Points = Sequence[GuardPoint[Any]]
Told = Callable[[GuardPoint[Any], Any, Verdict, str], object]
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

    Both are kept by the points' names. A point that no plugin offers is never asked.
    """

    name: str
    guards: Mapping[Point, GuardFunction]
    self_test: Callable[..., None]
    proves_on: type[Backend] | None = None
    observes: Mapping[Point, Watcher] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in ("guards", "observes"):
            named = {str(point): do for point, do in getattr(self, each).items()}
            object.__setattr__(self, each, named)

    @property
    def points(self) -> set[str]:
        """The names of the points it fills or watches."""
        return {str(point) for point in (*self.guards, *self.observes)}


Systems = Sequence[SecuritySystem]
Fail = Callable[[str, str], object]


class _Points(dict[GuardPoint[Any], _Asked | None]):
    """What is asked at each point; one that no healthy plugin offers refuses."""

    def __missing__(self, point: GuardPoint[Any]) -> _Asked | None:
        return _asked(point.name, (), point.lost)


class Guards:
    """The compiled guard points of one daemon.

    Args:
        systems: The active ones.
        fail: Told of a system, by name, that broke its contract, and how.

    Attributes:
        closed: The points that refuse everything, by name, each with its reason.
        on_verdict: Told of point, case, verdict and the system it is of (none where
            the point is closed), in the thread that asks; None where nobody listens.
    """

    on_verdict: Told | None = None

    def __init__(self, systems: Systems = (), fail: Fail = lambda *_: None) -> None:
        self._fail = fail
        self.compile(systems)

    def compile(
        self, active: Systems, failed: Systems = (), points: Points = KNOWN
    ) -> None:
        """Ask the guards of these systems from now on, and no others.

        Args:
            active: The systems to ask.
            failed: Systems that cannot be asked: what they guard is closed.
            points: The points there are.
        """
        closed: dict[str, str] = {}
        for point in points:
            name = point.name
            broken = [system.name for system in failed if name in system.guards]
            filled = {system.name for system in active if name in system.guards}
            lacking = broken + [s for s in point.requires if s not in filled]
            if lacking:
                reason = "it has failed" if broken else "no enabled plugin offers it"
                closed[name] = point.refusal(lacking[0], reason)
        self.closed: Mapping[str, str] = closed
        asked = {p: _asked(p.name, active, closed.get(p.name)) for p in points}
        self._points = _Points(asked)

    def filled(self, point: GuardPoint[Any]) -> bool:
        """Tell whether the point is to be asked, so that a case is worth building."""
        return self._points[point] is not None

    def check(self, point: GuardPoint[Case], case: Case) -> Case:
        """Ask a point, tell its watchers, and return the case as the guards leave it.

        Raises:
            AgentHostError: The error a guard's Deny names (Blocked unless it says).
        """
        if (asked := self._points[point]) is None:
            return case
        guards, watchers = asked
        left, verdict, system = case, ALLOW, ""
        for name, guard in guards:
            answer = self._answer(point, name, guard, left)
            if isinstance(answer, Allow):
                continue
            verdict, system = answer, name
            if isinstance(answer, Deny):
                break
            left = replace(left, text=answer.value)  # type: ignore[type-var]  # reason: every case is a dataclass
        for name, watcher in watchers:
            try:
                watcher(case, verdict)
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                self._fail(name, f"its watcher of {point} raised {describe(error)}")
        if self.on_verdict is not None:
            self.on_verdict(point, case, verdict, system)
        if isinstance(verdict, Deny):
            raise verdict.error(verdict.reason)
        return left

    def _answer(
        self, point: GuardPoint[Any], name: str, ask: GuardFunction, case: Any
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
                case Replace(str()) if point.replaceable:
                    return answer
            fault = f"answered {type(answer).__name__}, which is no verdict there"
            if inspect.iscoroutine(answer):
                answer.close()
        self._fail(name, f"its guard of {point} {fault}")
        return Deny(point.refusal(name, "it has failed"))


def _asked(point: str, systems: Systems, closed: str | None) -> _Asked | None:
    guards = tuple((s.name, s.guards[point]) for s in systems if point in s.guards)
    told = tuple((s.name, s.observes[point]) for s in systems if point in s.observes)
    if closed is not None:
        guards = (("", lambda _: Deny(closed)),)
    return (guards, told) if guards or told else None


def stand_in(name: str, among: Points) -> SecuritySystem:
    """Stand in for what failed before it said what it guards: it may be any effect."""
    points: list[Point] = [point for point in among if point.effects]
    refuse: GuardFunction = lambda _: Deny(f"{name} has failed")  # noqa: E731
    return SecuritySystem(name, dict.fromkeys(points, refuse), lambda: None)
