"""What was spent in a rolling window, and how much room a limit leaves."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from agenthost import Pool
from agenthost_values.value_class import value_class

SLOTS = 240


class Window:
    """Sums over the last ``span`` seconds, in 240 slots; a slot leaves as a whole."""

    def __init__(self, span: float) -> None:
        self.span = span
        self.width = span / SLOTS
        self._slots: deque[tuple[int, int]] = deque()
        self._total = 0

    def add(self, at: float, amount: int) -> None:
        """Count an amount at a moment that is not before the last one."""
        self.add_slot(int(at / self.width), amount)

    def add_slot(self, slot: int, amount: int) -> None:
        """Count an amount in a slot; ``slot * width`` is its beginning."""
        if self._slots and self._slots[-1][0] >= slot:
            last, before = self._slots.pop()
            self._slots.append((last, before + amount))
        else:
            self._slots.append((slot, amount))
        self._total += amount

    def used(self, now: float) -> int:
        """Sum what is not older than the span."""
        while self._slots and (self._slots[0][0] + 1) * self.width + self.span <= now:
            self._total -= self._slots.popleft()[1]
        return self._total


@value_class
class Limit:
    """A limit as it is configured; ``amount`` is micro-USD or tokens."""

    name: str
    amount: int
    span: float
    tokens: bool = False

    def told(self, amount: int) -> str:
        """Write an amount for a person."""
        return f"{amount} tokens" if self.tokens else f"${amount / 1_000_000:.6f}"


class Room(Protocol):
    """Something that a call draws from."""

    limit: Limit
    subject: str
    held: int

    def used(self, now: float) -> int:
        """Sum what was spent."""
        ...

    def settle(self, held: int, spent: int, now: float) -> None:
        """Give back what was held and count what was spent."""
        ...


@dataclass(slots=True)
class Meter:
    """A limit over a window, with what running calls hold of it."""

    subject: str
    limit: Limit
    held: int = 0
    quiet_until: float = 0.0
    window: Window = field(init=False)

    def __post_init__(self) -> None:
        self.window = Window(self.limit.span)

    def used(self, now: float) -> int:
        """Sum what was spent in the window."""
        return self.window.used(now)

    def settle(self, held: int, spent: int, now: float) -> None:
        """Give back what was held and count what was spent."""
        self.held -= held
        self.window.add(now, spent)


class PoolRoom:
    """A run's own limit, shared by the turns that it starts."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.limit = Limit("max_cost_micro_usd", pool.limit, 0.0)
        self.subject = "the run"

    @property
    def held(self) -> int:
        """What running calls hold."""
        return self.pool.held

    @held.setter
    def held(self, amount: int) -> None:
        self.pool.held = amount

    def used(self, now: float) -> int:  # noqa: ARG002 - a run has no window
        """Sum what the run has spent."""
        return self.pool.used

    def settle(self, held: int, spent: int, now: float) -> None:  # noqa: ARG002
        """Give back what was held and count what was spent."""
        self.pool.held -= held
        self.pool.used += spent
