"""The generic cell rate algorithm: what a client used, paid off at a steady pace."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from agenthost import ALLOW, Deny, RateLimited, RequestCase, Verdict

from .addresses import client_of
from .costs import Costs, compiled, cost_of
from .debts import Debts

if TYPE_CHECKING:
    from .settings import RateLimit

MINUTE = 60.0
_ROUNDING = 1e-6
"""Seconds that sums of fractions may be off."""


class Limiter:
    """Asked at ``request``: it charges the client's address, or refuses.

    Args:
        monotonic: Seconds of a clock that never jumps.
        units: Units that a client gets back in a minute.
        burst: Units it may spend at once; what costs more takes all of it.
    """

    def __init__(
        self, monotonic: Callable[[], float], units: int = 500, burst: int = 500
    ) -> None:
        self._monotonic = monotonic
        self._allow(units, burst)
        self._costs: Costs = ()
        self._debts = Debts()
        self._why_off = ""

    def set(self, said: RateLimit, monotonic: Callable[[], float]) -> None:
        """Do as the configuration says from now on."""
        self._monotonic = monotonic
        self._allow(said.units_per_minute, said.burst)
        self._costs = compiled(said.costs)
        if not said.enabled:
            self._why_off = "[rate_limit] enabled is false, so nobody is limited"

    def off(self) -> str:
        """Tell why nobody is limited, "" while everybody is."""
        return self._why_off

    def __call__(self, case: RequestCase) -> Verdict:
        """Let the request in, or tell how long to wait."""
        if self._why_off:
            return ALLOW
        cost = case.cost
        if self._costs:
            cost = cost_of(self._costs, case.method, case.path, cost)
        units, now = min(cost, self._burst), self._monotonic()
        due = self._debts.due
        place = self._debts.place(client_of(case.client))
        before = max(due[place], now)
        after = before + units * self._one
        wait = after - now - self._patience
        if units > 0 and wait > _ROUNDING:
            return self._refuse(before - now, math.ceil(wait))
        due[place] = after
        return ALLOW

    def _allow(self, units: int, burst: int) -> None:
        self._units, self._burst = units, burst
        self._one = MINUTE / units
        self._patience = burst * self._one

    def _refuse(self, owed: float, wait: int) -> Verdict:
        left = int((self._patience - owed) / self._one + _ROUNDING)
        return Deny(
            f"your address may use {self._units} units a minute; wait {wait} s, or "
            "raise [rate_limit] units_per_minute",
            partial(RateLimited, window=(self._burst, left, wait)),
        )
