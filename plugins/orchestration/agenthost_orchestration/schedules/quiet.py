"""Quiet hours: a stretch of each local day in which nothing is due."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, tzinfo

from agenthost import InvalidInput
from agenthost_values.value_class import value_class

_TIME = r"((?:[01]\d|2[0-3]):[0-5]\d)"
_HOURS = re.compile(rf"\s*{_TIME}\s*-\s*{_TIME}\s*")


@value_class
class Quiet:
    """From one time of day up to another, over midnight where that is earlier."""

    start: time
    stop: time

    def end(self, moment: float, zone: tzinfo) -> float | None:
        """Give when the quiet hours end that a moment lies in; None if in none."""
        shown = datetime.fromtimestamp(moment, zone)
        now = shown.time()
        if self.start < self.stop:
            quiet = self.start <= now < self.stop
        else:
            quiet = now >= self.start or now < self.stop
        if not quiet:
            return None
        days = 0 if now < self.stop else 1
        stop = datetime.combine(shown.date() + timedelta(days=days), self.stop, zone)
        # In the second of two equal hours the first end lies behind.
        ends = (stop.timestamp(), stop.replace(fold=1).timestamp())
        return max(moment + 1, next((end for end in ends if end > moment), moment))


def quiet_of(text: str) -> Quiet:
    """Read quiet hours.

    Raises:
        InvalidInput: They are not two different times of day.
    """
    found = _HOURS.fullmatch(text)
    if found is None or found[1] == found[2]:
        raise InvalidInput("quiet_hours", 'write two times of day, as in "22:00-07:00"')
    return Quiet(time.fromisoformat(found[1]), time.fromisoformat(found[2]))
