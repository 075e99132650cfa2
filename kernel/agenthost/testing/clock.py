"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, tzinfo

START = 1_767_225_600.0


class ManualClock:
    """Time as a test tells it: it starts on 2026-01-01 and moves by ``advance``."""

    def __init__(self, start: float = START) -> None:
        self._start = start
        self._passed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def time(self) -> float:
        """Seconds since the epoch, UTC."""
        return self._start + self._passed

    def monotonic(self) -> float:
        """Seconds since the test began."""
        return self._passed

    def now(self, zone: tzinfo = UTC) -> datetime:
        """The present moment in a zone."""
        return datetime.fromtimestamp(self.time(), zone)

    async def sleep(self, seconds: float) -> None:
        """Wait until the test has moved the clock so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        # The difference of two moments of the epoch is off by parts of a microsecond.
        due = round(self._passed + seconds, 6)
        heapq.heappush(self._sleepers, (due, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Move the clock and wake, in order, whoever was due by then."""
        until = self._passed + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            due, _, woken = heapq.heappop(self._sleepers)
            self._passed = due
            if not woken.done():
                woken.set_result(None)
            await asyncio.sleep(0)
        self._passed = until
        await asyncio.sleep(0)
