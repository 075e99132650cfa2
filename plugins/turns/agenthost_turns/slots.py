"""How many turns run at once, and how long one may: only while they do run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agenthost import Turn, TurnState


def expire(turn: Turn) -> None:
    """End a turn that has run as long as it may."""
    limit = "it ran longer than turns.max_seconds allows"
    turn.cancel(limit, TurnState.FAILED)


class Slot:
    """The place of a running turn; while it waits for something it takes none.

    Args:
        free: The places of all turns.
        seconds: How long the turn may run in all; 0 is no limit.
        expire: Called once when it has run that long.
    """

    def __init__(
        self, free: asyncio.Semaphore, seconds: float, expire: Callable[[], None]
    ) -> None:
        self._free = free
        self._left = seconds
        self._expire = expire
        self._aside = 0
        self._taken = False
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Slot:
        await self._take()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Leave the place to others, and stop the clock, while the turn waits."""
        self._aside += 1
        if self._aside == 1:
            self._leave()
        try:
            yield
        finally:
            self._aside -= 1
            if self._aside == 0:
                await self._take()

    async def _take(self) -> None:
        await self._free.acquire()
        if self._taken or self._aside:
            # Meanwhile another of its waits has begun, or has ended and taken one.
            self._free.release()
            return
        self._taken = True
        if self._left > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._left, self._expire)

    def _leave(self) -> None:
        """Give the place back, unless who is cancelled while aside has none."""
        if self._timer is not None:
            self._timer.cancel()
            # What is left is never 0, which would mean no limit.
            now = asyncio.get_running_loop().time()
            self._left = max(self._timer.when() - now, 0.001)
            self._timer = None
        if self._taken:
            self._taken = False
            self._free.release()
