"""The timer of all schedules: it sleeps until the nearest time, and asks nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from agenthost import AgentHostError, Host

from .texts import NEAREST

LONGEST_WAIT = 60.0
"""Seconds after which a jump of the wall clock is noticed."""
TRY_AGAIN = 5.0

log = logging.getLogger(__name__)


class Due(Protocol):
    """What is to be done when it is time."""

    async def walk_again(self, now: float) -> None:
        """Look anew for the next time of each: the clock may have been set back."""

    async def decide(self, now: float) -> None:
        """Decide about all times up to now."""


class Timekeeper:
    """One task and one timer, armed for the nearest time and again at each change.

    What is due stands in rows alone, so a crash anywhere leaves it as it was.

    Args:
        host: The daemon.
        due: Gives what is to be done when it is time; not called while there is none.
        follow: Takes note of what became of agents; called after each change.
    """

    def __init__(
        self,
        host: Host,
        due: Callable[[], Due],
        follow: Callable[[], Awaitable[None]],
    ) -> None:
        self._host = host
        self._due = due
        self._follow = follow
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # As if the clock stood later before: the first look is at every schedule.
        self._seen = float("inf")

    def start(self) -> None:
        """Begin with what the last process left."""
        self._task = asyncio.create_task(self._run(), name="schedules")

    def wake(self) -> None:
        """Look again: something was changed."""
        self._changed.set()

    async def stop(self) -> None:
        """End; what becomes due is looked at by the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                await self._follow()
                nearest = await self._look()
                since = self._seen
            except Exception as error:
                known = isinstance(error, AgentHostError)
                log.warning("schedules are looked at again", exc_info=not known)
                since = self._host.clock.time()
                nearest = since + TRY_AGAIN
            await self._wait(nearest, since)

    async def _look(self) -> float | None:
        """Do what is due, and tell when something will be."""
        nearest = await self._nearest()
        if nearest is None:
            return None
        now = self._host.clock.time()
        if now < self._seen:
            await self._due().walk_again(now)
            nearest = await self._nearest()
        # Not before: a walk that failed is made again.
        self._seen = now
        if nearest is None or nearest > now:
            return nearest
        await self._due().decide(now)
        return await self._nearest()

    async def _nearest(self) -> float | None:
        row = await self._host.store.first(NEAREST)
        return None if row is None else row["next_at"]

    async def _wait(self, nearest: float | None, since: float) -> None:
        """Wait until something changes, it is time, or the clock was set back."""
        if nearest is None:
            await self._changed.wait()
            return
        waits = [
            asyncio.ensure_future(self._sleep_until(nearest, since)),
            asyncio.ensure_future(self._changed.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _sleep_until(self, moment: float, seen: float) -> None:
        """Sleep until a moment, or until the clock is before one that it has shown."""
        clock = self._host.clock
        while seen <= (now := clock.time()) < moment:
            seen = now
            self._seen = max(self._seen, seen)
            # Never longer at once: the wall clock may jump, and the sleep does not.
            await clock.sleep(min(moment - now, LONGEST_WAIT))
