"""One line of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    ``value`` is held against ``limit``: a ratio when there is a yardstick, else the
    figure itself. ``at_least`` turns the comparison round.
    """

    name: str
    ours: float
    unit: str
    limit: float
    yardstick: float | None = None
    at_least: bool = False

    @property
    def value(self) -> float:
        """What the limit speaks of."""
        return self.ours if self.yardstick is None else self.ours / self.yardstick

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        if self.at_least:
            return self.value >= self.limit
        return self.value <= self.limit
