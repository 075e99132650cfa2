"""Which write functions took long: while one runs, every node's other writes wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from agenthost import SlowWrite

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

LONG = 0.1
"""Seconds from which a write function is slow."""
MOST_NAMES = 64

log = logging.getLogger(__name__)


class SlowWrites:
    """Runs write functions and remembers the slow ones by name."""

    def __init__(self) -> None:
        self._known: dict[str, SlowWrite] = {}

    def list(self) -> Sequence[SlowWrite]:
        """Give the slow ones, the slowest first; any thread may ask."""
        known = tuple(self._known.values())
        return sorted(known, key=lambda each: -each.longest)

    def run(self, fn: Callable[[Connection], T], connection: Connection) -> T:
        """Run a function and note it when it was slow, however it ended."""
        began = perf_counter()
        try:
            return fn(connection)
        finally:
            taken = perf_counter() - began
            if taken >= LONG:
                self._note(name_of(fn), taken)

    def _note(self, name: str, taken: float) -> None:
        log.warning("the write %s took %.0f ms; others waited", name, taken * 1_000)
        before = self._known.get(name)
        if before is None and len(self._known) >= MOST_NAMES:
            # The least slow one makes room.
            del self._known[self.list()[-1].name]
        count, longest = (before.count, before.longest) if before else (0, 0.0)
        self._known[name] = SlowWrite(name, count + 1, max(longest, taken))


def name_of(fn: Callable[..., Any]) -> str:
    """Name a function with its module, which begins with its plugin's package."""
    while isinstance(fn, partial):
        fn = fn.func
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"
