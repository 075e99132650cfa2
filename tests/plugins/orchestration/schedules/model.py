"""The rules of cron and of DST once more: every minute is looked at, by no library."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

DAY = 86_400
TURNS = {
    "Europe/Berlin": ("2026-03-28", "2026-10-24"),
    "America/New_York": ("2026-03-07", "2026-10-31"),
    "Australia/Lord_Howe": ("2026-04-04", "2026-10-03"),
    "Africa/Casablanca": ("2026-02-14", "2026-03-21"),
    "UTC": ("2026-02-28",),
}
"""The days before the clocks of a zone are turned."""


def fits(field: str, value: int, least: int, most: int) -> bool:
    """Tell whether a number is among those that a field says."""
    for term in field.split(","):
        span, _, step = term.partition("/")
        low, high = least, most
        if span != "*":
            first, dash, last = span.partition("-")
            low = int(first)
            high = int(last) if dash else (most if step else low)
        if low <= value <= high and (value - low) % int(step or 1) == 0:
            return True
    return False


def shown(cron: str, at: datetime) -> bool:
    """Tell whether a local time is one that the expression says."""
    minute, hour, day, month, weekday = cron.split()
    by_day = fits(day, at.day, 1, 31)
    by_weekday = any(fits(weekday, each, 0, 7) for each in _weekdays(at))
    either = not day.startswith("*") and not weekday.startswith("*")
    return (
        fits(minute, at.minute, 0, 59)
        and fits(hour, at.hour, 0, 23)
        and fits(month, at.month, 1, 12)
        and (by_day or by_weekday if either else by_day and by_weekday)
    )


def _weekdays(at: datetime) -> tuple[int, ...]:
    day = at.isoweekday()
    return (0, 7) if day == 7 else (day,)


def model(cron: str, zone: ZoneInfo, start: datetime, days: int) -> Iterator[float]:
    """Give every moment in some local days at which the expression is due."""
    first = start.replace(tzinfo=zone).timestamp()
    minutes = range(int(first) - DAY, int(first) + (days + 2) * DAY, 60)
    clocks = [
        (m, datetime.fromtimestamp(m, zone).replace(tzinfo=None)) for m in minutes
    ]
    if cron.split()[1].startswith("*"):
        yield from (float(moment) for moment, clock in clocks if shown(cron, clock))
        return
    seen: dict[datetime, int] = {}
    for moment, clock in clocks:
        seen.setdefault(clock, moment)
    due = set()
    wall = clocks[0][1]
    while wall <= clocks[-1][1]:
        if shown(cron, wall):
            # The first minute that any clock shows from then on.
            later = wall
            while later not in seen:
                later += timedelta(minutes=1)
            due.add(float(seen[later]))
        wall += timedelta(minutes=1)
    yield from sorted(due)
