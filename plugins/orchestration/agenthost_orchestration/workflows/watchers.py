"""Who is told that something has changed in a run; they look at the rows themselves.

Another daemon of the database may do the run: it tells, and as its word may be lost,
who watches there looks every second too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from agenthost import Signals

TOPIC = "runs"
LOOK = 1.0
"""Seconds between two looks where another daemon may do the run."""


class Watchers:
    """The watchers of all runs; nothing is kept of a run that nobody watches."""

    def __init__(self) -> None:
        self._all: dict[str, set[asyncio.Event]] = {}
        self._of_ends: dict[str, set[asyncio.Event]] = {}
        self._signals: Signals | None = None

    def reach(self, signals: Signals) -> None:
        """Tell other daemons, and hear them, from now on."""
        self._signals = signals
        signals.listen(TOPIC, self._heard)

    @contextmanager
    def watching(self, run_id: str, *, steps: bool = False) -> Iterator[asyncio.Event]:
        """Give an event that is set by each change: the run's own, or its steps' too.

        Who watches clears it, looks, and waits for it.
        """
        watched = self._all if steps else self._of_ends
        changed = asyncio.Event()
        watched.setdefault(run_id, set()).add(changed)
        looking = asyncio.create_task(_look(changed)) if self._signals else None
        try:
            yield changed
        finally:
            if looking is not None:
                looking.cancel()
            watched[run_id].discard(changed)
            if not watched[run_id]:
                del watched[run_id]

    def step(self, run_id: str) -> None:
        """Tell that a step of the run has begun or ended."""
        _set(self._all, run_id)
        if self._signals is not None:
            self._signals.tell(TOPIC, run_id)

    def run(self, run_id: str) -> None:
        """Tell that the run itself has changed."""
        self.step(run_id)
        _set(self._of_ends, run_id)

    def everyone(self) -> None:
        """Tell the watchers of all runs."""
        for watched in (self._all, self._of_ends):
            for each in watched.values():
                for changed in each:
                    changed.set()

    def _heard(self, run_id: str) -> None:
        if not run_id:
            self.everyone()
        for watched in (self._all, self._of_ends):
            _set(watched, run_id)


def _set(watched: dict[str, set[asyncio.Event]], run_id: str) -> None:
    for changed in watched.get(run_id, ()):
        changed.set()


async def _look(changed: asyncio.Event) -> None:
    while True:
        await asyncio.sleep(LOOK)
        changed.set()
