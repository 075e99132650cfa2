"""A daemon's memory: kept from the collector at work, given back at rest."""

from __future__ import annotations

import gc
from collections.abc import Callable

COLLECT_AFTER = (10_000, 20, 50)


def settle_memory() -> None:
    """Keep the collector away from what stays: it costs a busy daemon a seventh."""
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()


class Memory:
    """Gives back what work has left behind, once for each time something was done."""

    def __init__(self) -> None:
        self._seen = _collections()
        self._trim: Callable[[int], int] | None = None

    def give_back(self) -> None:
        """Collect, and return free pages to the system; nothing when nothing happened.

        The C library keeps what was freed for itself: after many long answers that is
        hundreds of megabytes, unless it is asked to let go.
        """
        if _collections() == self._seen:
            return
        gc.collect()
        if self._trim is None:
            self._trim = _trim()
        self._trim(0)
        self._seen = _collections()


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def _trim() -> Callable[[int], int]:
    """Find glibc's ``malloc_trim``; elsewhere there is nothing to call."""
    import ctypes

    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return lambda _: 0
    return found
