"""How vendors count the length of a message.

The size of two texts together is never more than the sum of both: pages rely on it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from itertools import pairwise

JOINER = "\u200d"


def _utf16(text: str) -> int:
    return len(text) + sum(sign > "\uffff" for sign in text)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def continues(before: str, sign: str) -> bool:
    """Tell whether a sign belongs to the one before it: an accent, a joined emoji."""
    if unicodedata.category(before) in {"Cc", "Zl", "Zp"}:
        return False
    return sign == JOINER or unicodedata.category(sign) in {"Mn", "Me"}


def _graphemes(text: str) -> int:
    """Count what people see as signs; joined emoji count apart, never too few."""
    return len(text) - sum(continues(before, sign) for before, sign in pairwise(text))


UNITS: Mapping[str, Callable[[str], int]] = {
    "characters": len,
    "utf16": _utf16,
    "graphemes": _graphemes,
    "bytes": _bytes,
}
