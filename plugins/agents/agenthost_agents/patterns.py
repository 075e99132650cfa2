"""Narrow glob patterns of tool names without ever allowing more than before."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

_WILD = frozenset("*?[")


def is_pattern(text: str) -> bool:
    """Tell whether the text stands for more than itself."""
    return not _WILD.isdisjoint(text)


def narrowed(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """The patterns of each side that the other side covers whole."""
    left, right = tuple(first), tuple(second)
    kept = [p for p in left if _covered(p, right)]
    kept += [p for p in right if _covered(p, left)]
    return tuple(dict.fromkeys(kept))


def without(
    patterns: Iterable[str], blocked: Iterable[str], known: Iterable[str] | None
) -> tuple[str, ...]:
    """What the patterns allow, less the blocked.

    Args:
        patterns: What is allowed.
        blocked: What is not.
        known: All names there are; None keeps every pattern as it stands.
    """
    allowed, barred = tuple(patterns), tuple(blocked)
    if known is None:
        names = list(allowed)
    else:
        names = [p for p in allowed if not is_pattern(p)]
        names += sorted(n for n in known if matches(n, allowed))
    return tuple(
        name
        for name in dict.fromkeys(names)
        if is_pattern(name) or not matches(name, barred)
    )


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether one of the patterns matches the name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _covered(pattern: str, others: tuple[str, ...]) -> bool:
    if not is_pattern(pattern):
        return matches(pattern, others)
    return any(pattern == other or _prefix_covers(other, pattern) for other in others)


def _prefix_covers(other: str, pattern: str) -> bool:
    prefix = other.removesuffix("*")
    ends_wild = prefix != other and not is_pattern(prefix)
    return ends_wild and pattern.startswith(prefix)
