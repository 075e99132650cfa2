"""Who is told that something has changed in a run; they look at the rows themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Watchers:
    """The watchers of all runs; nothing is kept of a run that nobody watches."""

    def __init__(self) -> None:
        self._all: dict[str, set[asyncio.Event]] = {}
        self._of_ends: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def watching(self, run_id: str, *, steps: bool = False) -> Iterator[asyncio.Event]:
        """Give an event that is set by each change: the run's own, or its steps' too.

        Who watches clears it, looks, and waits for it.
        """
        watched = self._all if steps else self._of_ends
        changed = asyncio.Event()
        watched.setdefault(run_id, set()).add(changed)
        try:
            yield changed
        finally:
            watched[run_id].discard(changed)
            if not watched[run_id]:
                del watched[run_id]

    def step(self, run_id: str) -> None:
        """Tell that a step of the run has begun or ended."""
        for changed in self._all.get(run_id, ()):
            changed.set()

    def run(self, run_id: str) -> None:
        """Tell that the run itself has changed."""
        self.step(run_id)
        for changed in self._of_ends.get(run_id, ()):
            changed.set()

    def everyone(self) -> None:
        """Tell the watchers of all runs."""
        for watched in (self._all, self._of_ends):
            for each in watched.values():
                for changed in each:
                    changed.set()
