"""When something is due, as it is said; what that means is in times.py."""

from __future__ import annotations

from agenthost_values.value_class import value_class

SHORTEST = 10
"""Seconds between two times of an interval, at least."""
LONGEST = 366 * 86_400
"""Seconds between two of them, at most, and how late anything may be done."""


@value_class
class When:
    """When something is due: one of ``cron``, ``every`` and ``at``.

    Args:
        cron: Five fields, or "".
        every: Seconds from one time to the next, or 0.
        at: The one moment in epoch seconds, or None.
        zone: The IANA name of the zone of ``cron`` and ``quiet``.
        quiet: Hours in which nothing is due, ``22:00-07:00``, or "".
        anchor: The epoch second from which ``every`` counts.
    """

    cron: str = ""
    every: int = 0
    at: float | None = None
    zone: str = "UTC"
    quiet: str = ""
    anchor: float = 0.0
