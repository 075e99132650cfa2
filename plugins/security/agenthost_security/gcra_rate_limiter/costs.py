"""Costs that the operator has set otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping

Costs = tuple[tuple[re.Pattern[str], int], ...]

_ASKED = re.compile(r"[A-Z]+ /\S*")
_PARTS = {"*": "[^/]*", "**": ".*"}


def compiled(costs: Mapping[str, int]) -> Costs:
    """Make of ``{"POST /api/agents/*": 20}`` what a request is compared with.

    Raises:
        ValueError: A key is no method and path.
    """
    for asked in costs:
        if not _ASKED.fullmatch(asked):
            raise ValueError(
                f'{asked!r} must be a method and a path, such as "POST /api/agents"'
            )
    return tuple((_pattern(asked), units) for asked, units in costs.items())


def _pattern(asked: str) -> re.Pattern[str]:
    # One star never reaches over a slash, and two stand last: no path takes long.
    parts = re.split(r"(\*\*$|\*)", asked)
    return re.compile("".join(_PARTS.get(part) or re.escape(part) for part in parts))


def cost_of(costs: Costs, method: str, path: str, cost: int) -> int:
    """Tell what a request costs: its own cost, unless another is set."""
    asked = f"{method} {path}"
    return next((units for fits, units in costs if fits.fullmatch(asked)), cost)
