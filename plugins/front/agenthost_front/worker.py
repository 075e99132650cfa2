"""What Hypercorn's protocols ask of the server they run in.

Hypercorn's own comes with all of its server, which a start would import for nothing.
"""

from __future__ import annotations

import asyncio


class Flag:
    """An event of asyncio as Hypercorn's protocols use it: everything is awaited."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.is_set = self._event.is_set

    async def wait(self) -> None:
        """Wait until it is set."""
        await self._event.wait()

    async def set(self) -> None:
        """Let everybody go on."""
        self._event.set()

    async def clear(self) -> None:
        """Let everybody wait from now on."""
        self._event.clear()


class Worker:
    """What the connections of a server share; ``terminated`` once it takes no more."""

    event_class = Flag

    def __init__(self) -> None:
        self.terminated = Flag()

    async def mark_request(self) -> None:
        """Count nothing: this worker ends with its daemon, not after some requests."""

    @staticmethod
    async def sleep(seconds: float) -> None:
        """Wait between two pings."""
        await asyncio.sleep(seconds)
