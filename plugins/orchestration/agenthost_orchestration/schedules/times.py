"""When a schedule is due: pure functions of what it says, a zone and a moment.

A cron expression speaks of local time, which a zone skips and repeats twice a year:

- Where the hour is said (``30 2 * * *``), a time that does not exist is due once,
  right after the gap, and one that exists twice is due once, the first time.
- Where the hour begins with ``*`` (``0 * * * *``, ``*/10 * * * *``), it goes by the
  time that passes: due at each moment whose local time fits, in a repeated hour too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from math import floor
from typing import TYPE_CHECKING

from agenthost import InvalidInput

from .quiet import Quiet, quiet_of
from .when import When
from .zones import moment_of, offset_at, turn_of, zone_of

if TYPE_CHECKING:
    from cronsim import CronSim

TRIES = 500
"""Quiet hours in a row that a schedule may run into; then it has no time ahead."""
SPANS = (600.0, 3_600.0, 86_400.0, 8 * 86_400.0, 32 * 86_400.0, float("inf"))
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local time, of no zone


class Times:
    """The times of a schedule.

    Args:
        when: What it says.

    Raises:
        InvalidInput: The expression, the zone or the quiet hours are wrong.
    """

    def __init__(self, when: When) -> None:
        self._when = when
        self._zone = zone_of(when.zone)
        self._quiet: Quiet | None = quiet_of(when.quiet) if when.quiet else None
        if when.cron:
            _check_cron(when.cron)

    def after(self, moment: float) -> float | None:
        """Give the first time after a moment; None where there is none."""
        for _ in range(TRIES):
            found = self._next(moment)
            if found is None or self._quiet is None:
                return found
            end = self._quiet.end(found, self._zone)
            if end is None:
                return found
            # A time at which the quiet hours end is in them no more.
            moment = end - 1
        return None

    def last(self, since: float, until: float) -> float | None:
        """Give the last time after one moment and not after another, if any."""
        for span in SPANS:
            start = max(since, until - span)
            found = deque(self._within(start, until), maxlen=1)
            if found or start == since:
                return found[0] if found else None
        return None

    def count(self, since: float, until: float, most: int) -> int:
        """Count the times after one moment and not after another, up to a number."""
        counted = 0
        for _ in self._within(since, until):
            counted += 1
            if counted == most:
                break
        return counted

    def _within(self, since: float, until: float) -> Iterator[float]:
        moment = self.after(since)
        while moment is not None and moment <= until:
            yield moment
            moment = self.after(moment)

    def _next(self, moment: float) -> float | None:
        when = self._when
        if when.cron:
            by_clock = when.cron.split()[1].startswith("*")
            find = _by_passing_time if by_clock else _by_local_time
            return find(when.cron, self._zone, moment)
        if when.every:
            passed = floor((moment - when.anchor) / when.every)
            return when.anchor + (passed + 1) * when.every
        return when.at if when.at is not None and when.at > moment else None


def _check_cron(expression: str) -> None:
    from cronsim import CronSimError

    fields = expression.split()
    if len(fields) != 5:
        raise InvalidInput(
            "cron",
            f"{len(fields)} fields; use five: minute, hour, day of month, month, day "
            'of week, as in "0 9 * * 1-5"',
        )
    try:
        _cron(expression, EPOCH)
    except CronSimError as error:
        raise InvalidInput(
            "cron", f'{error}; write it as in "0 9 * * 1-5" or "*/15 * * * *"'
        ) from error


def _cron(expression: str, local: datetime) -> CronSim:
    """Walk through local times; without a zone, since what a zone does is ours."""
    # Imported here: most daemons have no cron expression, and a start waits for none.
    from cronsim import CronSim

    return CronSim(expression, local)


def _by_local_time(expression: str, zone: tzinfo, after: float) -> float | None:
    local = datetime.fromtimestamp(after, zone).replace(tzinfo=None)
    for found in _cron(expression, local):
        # In the second of two equal hours, what is found first lies behind.
        if (moment := moment_of(found, zone)) > after:
            return moment
    return None


def _by_passing_time(expression: str, zone: tzinfo, after: float) -> float | None:
    start, behind = after, 0
    while True:
        offset = offset_at(start, zone)
        local = EPOCH + timedelta(seconds=floor(start) - behind + offset)
        found = next(_cron(expression, local), None)
        if found is None:
            return None
        moment = found.replace(tzinfo=UTC).timestamp() - offset
        if offset_at(moment, zone) == offset:
            return moment
        # The zone turns before: look again from there, by what its clocks show then.
        start, behind = turn_of(zone, start, moment), 1
