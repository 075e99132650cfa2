"""When, in one text: ``every 30m``, five fields of cron, or one moment."""

from __future__ import annotations

import re
from datetime import datetime

from agenthost import InvalidInput

from .when import LONGEST, SHORTEST, When

_EVERY = re.compile(r"every\s+(\d{1,9})\s*([smhd])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def when_of(text: str, zone: str = "UTC") -> When:
    """Read when something is due; it may still be wrong as a cron expression is.

    Raises:
        InvalidInput: The interval is too short or too long, or the moment has no zone.
    """
    text = text.strip()
    if text.lower().startswith("every"):
        return When(every=_seconds(text), zone=zone)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return When(cron=text, zone=zone)
    if moment.tzinfo is None:
        raise InvalidInput("when", "a moment needs its zone: 2027-01-31T09:00:00Z")
    return When(at=moment.timestamp(), zone=zone)


def _seconds(text: str) -> int:
    found = _EVERY.fullmatch(text)
    if found is None:
        raise InvalidInput(
            "when", 'write "every 30s", "every 5m", "every 2h" or "every 1d"'
        )
    seconds = int(found[1]) * _SECONDS[found[2].lower()]
    if not SHORTEST <= seconds <= LONGEST:
        raise InvalidInput("when", f"must be {SHORTEST} s to 366 days")
    return seconds
