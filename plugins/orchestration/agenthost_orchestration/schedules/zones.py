"""Zones, and what their clocks skip and repeat; moments are epoch seconds."""

from __future__ import annotations

from datetime import datetime, tzinfo
from math import ceil, floor
from zoneinfo import ZoneInfo

from agenthost import InvalidInput


def zone_of(name: str) -> ZoneInfo:
    """Find a zone.

    Raises:
        InvalidInput: The name is none of IANA's.
    """
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise InvalidInput(
            "zone", f"unknown zone {name!r}; use an IANA name such as Europe/Lisbon"
        ) from error


def offset_at(moment: float, zone: tzinfo) -> int:
    """Tell by how many seconds the zone's clocks are ahead of UTC at a moment."""
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def moment_of(local: datetime, zone: tzinfo) -> float:
    """Give the moment at which the zone's clocks show a time.

    One that they show twice is the first of the two; one that they skip is the end of
    what they skip.
    """
    moment = local.replace(tzinfo=zone, fold=0).timestamp()
    shown = datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0)
    if shown == local.replace(fold=0):
        return moment
    skipped = (shown - local).total_seconds()
    return float(turn_of(zone, moment - skipped, moment))


def turn_of(zone: tzinfo, before: float, after: float) -> int:
    """Find the first second at which the clocks show another offset than before.

    Args:
        zone: It turns between the two moments.
        before: The first moment.
        after: The second, with another offset.
    """
    low, high, offset = floor(before), ceil(after), offset_at(before, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(middle, zone) == offset:
            low = middle
        else:
            high = middle
    return high
