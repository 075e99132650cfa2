"""Who was let in on somebody's word, and what they may use in a minute."""

from __future__ import annotations

import math
from collections.abc import Callable

from agenthost import Principal, RateLimited, Unauthenticated

MINUTE = 60.0
REMEMBERED = 4096

_GONE = "this key holds no more; ask for another"
_ROUNDING = 1e-6
"""Seconds that sums of fractions may be off."""


def who(principal: Principal) -> tuple[str, str]:
    """What tells one principal from another."""
    return principal.kind, principal.name


class Dismissals:
    """Principals that are none any more, numbered as they went; the newest alone."""

    def __init__(self) -> None:
        self.count = 0
        self._last: dict[tuple[str, str], int] = {}

    def add(self, principal: Principal) -> None:
        """Let it go: what was admitted for it before now ends."""
        self.count += 1
        # Anew at the end, where the youngest are.
        self._last.pop(who(principal), None)
        self._last[who(principal)] = self.count
        if len(self._last) > REMEMBERED:
            del self._last[next(iter(self._last))]

    def since(self, principal: Principal, count: int) -> bool:
        """Tell whether it went after so many had gone."""
        return self._last.get(who(principal), 0) > count


class Admission:
    """A principal that somebody vouched for, when ``count`` others had gone."""

    def __init__(
        self, dismissals: Dismissals, principal: Principal, count: int
    ) -> None:
        self.principal = principal
        self._dismissals = dismissals
        self._count = count

    @property
    def ended(self) -> bool:
        """Whether the principal was dismissed since."""
        return self._dismissals.since(self.principal, self._count)

    def check(self) -> None:
        """Go on only while it holds.

        Raises:
            Unauthenticated: The principal was dismissed.
        """
        if self.ended:
            raise Unauthenticated(_GONE)


class Allowances:
    """What each principal with an allowance has used: one number each (GCRA).

    It is when, going on at the allowed pace, all that was used would be paid off; a
    minute ahead at most. A call that costs more than a minute's worth takes all of it.

    Args:
        monotonic: Seconds of a clock that never jumps.
        limit: Principals remembered at once.
    """

    def __init__(self, monotonic: Callable[[], float], limit: int = 10_000) -> None:
        self._monotonic = monotonic
        self._limit = limit
        self._paid_off: dict[tuple[str, str], float] = {}

    def charge(self, principal: Principal, units: int) -> None:
        """Take units from a principal's allowance, when it has one.

        Raises:
            RateLimited: There are not so many left.
        """
        if principal.allowance is None:
            return
        limit = max(principal.allowance, 1)
        now, one = self._monotonic(), MINUTE / limit
        before = max(self._paid_off.get(who(principal), now), now)
        after = before + min(units, limit) * one
        wait = after - now - MINUTE
        if wait > _ROUNDING:
            left = int((MINUTE - (before - now)) / one + _ROUNDING)
            raise _spent(limit, left, math.ceil(wait))
        if len(self._paid_off) >= self._limit:
            self._forget(now)
        self._paid_off[who(principal)] = after

    def _forget(self, now: float) -> None:
        self._paid_off = {k: due for k, due in self._paid_off.items() if due > now}
        while len(self._paid_off) >= self._limit:
            del self._paid_off[next(iter(self._paid_off))]


def _spent(limit: int, left: int, wait: int) -> RateLimited:
    return RateLimited(
        f"this key may use {limit} units a minute; wait {wait} s, or raise its "
        "units_per_minute with another key",
        (limit, left, wait),
    )
