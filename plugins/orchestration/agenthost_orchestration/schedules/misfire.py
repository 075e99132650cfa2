"""What becomes of times at which nothing ran: in a stop, in a jump of the clock.

A time is late when it is seen more than ``GRACE`` after it. Of several times that have
passed unseen at most the last is done, when it is not late or the policy allows it; the
others are told of in one row, however many they are.
"""

from __future__ import annotations

from agenthost import timestamp
from agenthost_values.value_class import value_class

from .schedule import Misfire
from .times import Times

GRACE = 120.0
"""Seconds after which a time is late: twice what a jump of the clock stays unseen."""
COUNTED = 1_000
"""Missed times that are counted one by one; more are told as so many or more."""


@value_class
class Stretch:
    """Times in a row at which nothing is done."""

    first: float
    last: float
    count: int

    @property
    def key(self) -> str:
        """What its occasion is called: the time, or the first and the last."""
        first = timestamp(self.first)
        return first if self.count == 1 else f"{first}/{timestamp(self.last)}"

    def told(self, why: str) -> str:
        """Say how many times were missed, and why."""
        if self.count == 1:
            return why
        more = " or more" if self.count >= COUNTED else ""
        return (
            f"{self.count}{more} times from {timestamp(self.first)} to "
            f"{timestamp(self.last)}: {why}"
        )


@value_class
class Plan:
    """What becomes of the times up to now: one that is done, and what is missed."""

    done: float | None
    missed: Stretch | None
    next_at: float | None


def plan(times: Times, misfire: Misfire, due: float, now: float) -> Plan:
    """Decide about a time that is due, and all after it up to now."""
    last = times.last(due, now) or due
    late = now - last
    next_at = times.after(now)
    if late > GRACE and not misfire.allows(late):
        return Plan(None, _stretch(times, due, last), next_at)
    if last == due:
        return Plan(last, None, next_at)
    before = times.last(due, last - 0.001) or due
    return Plan(last, _stretch(times, due, before), next_at)


def _stretch(times: Times, first: float, last: float) -> Stretch:
    return Stretch(first, last, 1 + times.count(first, last, COUNTED - 1))
