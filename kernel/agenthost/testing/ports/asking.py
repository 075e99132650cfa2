"""Guards that note what they are asked, for the contracts of guarded ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...plugins.guards import ALLOW, Deny, Guards, Point, SecuritySystem, Verdict
from ...plugins.points import Guard, GuardPoint

POINTS = (Guard.PATH, Guard.URL, Guard.ADDRESS)
REQUIRED = sorted({name for point in POINTS for name in point.requires})
"""The systems without which these points refuse everything."""


class Asking:
    """What the guards of a port were asked.

    Args:
        refuses: Tells of a case whether it is refused; nothing is by default.

    Attributes:
        guards: To be given to the port.
        cases: All that was asked, each after the name of its point, in order.
    """

    def __init__(self, refuses: Callable[[Any], bool] = lambda _: False) -> None:
        self.cases: list[tuple[str, Any]] = []
        self._refuses = refuses
        noting: dict[Point, Any] = {point: self._noting(point) for point in POINTS}
        allowing: dict[Point, Any] = dict.fromkeys(POINTS, lambda _: ALLOW)
        systems = {"noting": noting, **dict.fromkeys(REQUIRED, allowing)}
        self.guards = Guards(
            [
                SecuritySystem(name, asked, lambda: None)
                for name, asked in systems.items()
            ]
        )

    def at(self, point: GuardPoint[Any]) -> list[Any]:
        """The cases of a point, in order."""
        return [case for name, case in self.cases if name == point.name]

    def _noting(self, point: GuardPoint[Any]) -> Callable[[Any], Verdict]:
        def ask(case: Any) -> Verdict:
            self.cases.append((point.name, case))
            return Deny("refused by a test") if self._refuses(case) else ALLOW

        return ask
