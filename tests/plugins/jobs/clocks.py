"""A clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, tzinfo


class StillClock:
    def __init__(self) -> None:
        self._now = 1_000_000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self.slept: list[float] = []
        self.sleeping = asyncio.Event()

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def now(self, zone: tzinfo = UTC) -> datetime:
        return datetime.fromtimestamp(self._now, zone)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.sleeping.set()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, future))
        await future

    def advance(self, seconds: float) -> None:
        self._now += seconds
        for due, future in self._sleepers:
            if due <= self._now and not future.done():
                future.set_result(None)
