"""A clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, tzinfo


class StillClock:
    def __init__(self) -> None:
        self._now = 1_000_000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self.slept: list[float] = []
        self._fell_asleep = asyncio.Condition()

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def now(self, zone: tzinfo = UTC) -> datetime:
        return datetime.fromtimestamp(self._now, zone)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        async with self._fell_asleep:
            self._fell_asleep.notify_all()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, future))
        await future

    def advance(self, seconds: float) -> None:
        self._now += seconds
        for due, future in self._sleepers:
            if due <= self._now and not future.done():
                future.set_result(None)

    async def sleeper(self, seconds: float) -> None:
        """Wait until somebody has begun to sleep for so long."""
        async with asyncio.timeout(30), self._fell_asleep:
            await self._fell_asleep.wait_for(lambda: seconds in self.slept)
