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
from dataclasses import replace
from typing import Any

from agenthost_values.value_class import value_class

from ..authorization import Refused
from ..errors import AgentHostError, Blocked
from ..ports.approvals import Ask, Asked
from ..ports.backend import Backend
from .calls import describe
from .points import KNOWN, Case, GuardPoint


@value_class
class Allow:
    """Go on."""


@value_class
class Deny:
    """Refuse; ``reason`` names the remedy. ``error`` makes what is raised of it."""

    reason: str
    error: Callable[[str], AgentHostError] = Blocked


@value_class
class Replace:
    """Go on with another value in the case's field that the point names."""

    value: Any


Verdict = Allow | Deny | Replace | Ask
ALLOW: Verdict = Allow()

GuardFunction = Callable[[Any], Verdict]
Point = str | GuardPoint[Any]
"""A point, or the name of one: its plugin need not be installed."""
Points = Sequence[GuardPoint[Any]]
EVERY_EFFECT = "*"
"""At this point stands who failed before it said what it guards."""
INACTIVE = "the security system {} is not active ({})"
_Asked = tuple[tuple[str, GuardFunction], ...]


@value_class
class SecuritySystem:
    """A named protection: the points it fills and how it proves itself.

    Args:
        name: As shown by ``/api/security``.
        guards: A synchronous function of the point's case for each point it fills; kept
            by the points' names. At a point that no plugin offers it is never asked.
        self_test: Raises when the protection does not work; run off the loop.
        proves_on: The class of backends of a port, for a protection that shows itself
            only in the backend that is used: the self-test is called with its ``open``.
        off: Tells why it protects nothing although it works, such as that the operator
            switched it off; "" while it protects.
    """

    name: str
    guards: Mapping[Point, GuardFunction]
    self_test: Callable[..., None]
    proves_on: type[Backend] | None = None
    off: Callable[[], str] = str

    def __post_init__(self) -> None:
        named = {str(point): guard for point, guard in self.guards.items()}
        object.__setattr__(self, "guards", named)


Systems = Sequence[SecuritySystem]
Fail = Callable[[str, str], object]


class _Points(dict[GuardPoint[Any], _Asked]):
    """What is asked at each point; one that no healthy plugin offers refuses."""

    def __missing__(self, point: GuardPoint[Any]) -> _Asked:
        why = f"no healthy plugin offers the guard point {point}"
        return _refusing(point.refusal(why))


class Guards:
    """The compiled guard points of one daemon.

    Args:
        systems: The active ones.
        fail: Told of a system, by name, that broke its contract, and how.

    Attributes:
        closed: The points that refuse everything, by name, each with its reason.
        on_verdict: Called with the point's name, case, verdict, and whose it is (empty
            where the point is closed), in the thread that asks; None: nobody listens.
        on_refused: Called with what :func:`authorize` raised, by who answers for it.
    """

    on_verdict: Callable[[str, Any, Verdict, str], object] | None = None
    on_refused: Callable[[Refused], object] = staticmethod(lambda _: None)

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
        asked = _Points()
        for point in points:
            name = point.name
            places = (name, EVERY_EFFECT if point.effects else name)
            broken = [s.name for s in failed if any(p in s.guards for p in places)]
            asked[point] = tuple(
                (s.name, s.guards[name]) for s in active if name in s.guards
            )
            filled = {system for system, _ in asked[point]}
            lacking = broken + [s for s in point.requires if s not in filled]
            if lacking:
                reason = "it has failed" if broken else "no enabled plugin offers it"
                closed[name] = point.refusal(INACTIVE.format(lacking[0], reason))
                asked[point] = _refusing(closed[name])
        self.closed: Mapping[str, str] = closed
        self._points = asked

    def filled(self, point: GuardPoint[Any]) -> bool:
        """Tell whether the point is to be asked, so that a case is worth building."""
        return bool(self._points[point]) or self.on_verdict is not None

    def check(self, point: GuardPoint[Case], case: Case) -> Case:
        """Ask a point, tell of the outcome, and return the case as the guards leave it.

        Raises:
            AgentHostError: The error a guard's Deny names (Blocked unless it says).
            Asked: Nobody denies it, and people are to be asked first.
        """
        left, verdict, system = case, ALLOW, ""
        asks: list[Ask] = []
        for name, guard in self._points[point]:
            answer = self._answer(point, name, guard, left)
            if isinstance(answer, Allow):
                continue
            verdict, system = answer, name
            if isinstance(answer, Deny):
                break
            if isinstance(answer, Ask):
                asks.append(answer)
                continue
            left = replace(left, **{point.replaceable: answer.value})  # type: ignore[type-var]  # reason: every case is a dataclass
        if self.on_verdict is not None:
            self.on_verdict(point.name, case, verdict, system)
        if isinstance(verdict, Deny):
            raise verdict.error(verdict.reason)
        if asks:
            raise Asked(asks)
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
                case Replace(value) if (field := point.replaceable) and isinstance(
                    value, type(getattr(case, field))
                ):
                    return answer
                case Ask() if point.asks:
                    return answer
            fault = f"answered {type(answer).__name__}, which is no verdict there"
            if inspect.iscoroutine(answer):
                answer.close()
        self._fail(name, f"its guard of {point} {fault}")
        return Deny(point.refusal(INACTIVE.format(name, "it has failed")))


def _refusing(why: str) -> _Asked:
    return (("", lambda _: Deny(why)),)


def stand_in(name: str) -> SecuritySystem:
    """Stand in for what failed before it said what it guards: it may be any effect."""
    refuse: GuardFunction = lambda _: Deny(f"{name} has failed")  # noqa: E731
    return SecuritySystem(name, {EVERY_EFFECT: refuse}, lambda: None)
