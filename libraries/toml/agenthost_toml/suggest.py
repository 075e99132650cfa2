"""Did you mean: the nearest known name to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 64


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that an unknown one was probably meant to be."""
    if len(name) > LONGEST:
        return None
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say ``; did you mean 'x'?``, or nothing when no known name is near."""
    match = nearest(name, known)
    return f"; did you mean {match!r}?" if match else ""
