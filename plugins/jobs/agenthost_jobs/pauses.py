"""How long to wait before a job is tried again."""

from __future__ import annotations

FIRST = 1.0
LONGEST = 300.0
MOST_DOUBLINGS = 16


def pause(failures: int, chance: float) -> float:
    """Give the seconds to wait after so many failures in a row.

    Args:
        failures: None means no wait; each further one doubles it, up to five minutes.
        chance: From 0 to 1. It decides about half of the wait, so that jobs which
            failed together do not all come back together.
    """
    if failures <= 0:
        return 0.0
    whole = min(FIRST * (1 << min(failures - 1, MOST_DOUBLINGS)), LONGEST)
    return whole * (1 + chance) / 2
