"""How many turns run at once, and how long one may: only while they do run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Slots:
    """The places of running turns; those that wait for something take none."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    @asynccontextmanager
    async def take(
        self, seconds: float, expire: Callable[[], None]
    ) -> AsyncIterator[Slot]:
        """Wait for a place and keep it.

        Args:
            seconds: How long the turn may run in all; 0 is no limit.
            expire: Called once when it has run that long.
        """
        await self._free.acquire()
        slot = Slot(self._free, seconds, expire)
        try:
            yield slot
        finally:
            slot.end()


class Slot:
    """The place of one running turn."""

    def __init__(
        self, free: asyncio.Semaphore, seconds: float, expire: Callable[[], None]
    ) -> None:
        self._free = free
        self._left = seconds
        self._expire = expire
        self._loop = asyncio.get_running_loop()
        self._aside = 0
        self._taken = True
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._run_clock()

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Leave the place to others, and stop the clock, while the turn waits."""
        self._aside += 1
        if self._aside == 1:
            self._stop_clock()
            self._free.release()
            self._taken = False
        try:
            yield
        finally:
            self._aside -= 1
            if self._aside == 0:
                await self._free.acquire()
                self._taken = True
                self._run_clock()

    def end(self) -> None:
        """Give the place back."""
        self._stop_clock()
        if self._taken:
            self._free.release()
            self._taken = False

    def _run_clock(self) -> None:
        if self._left > 0:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(self._left, self._expire)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            # What is left is never 0, which would mean no limit.
            self._left = max(self._left - (self._loop.time() - self._since), 0.001)
