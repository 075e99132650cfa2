"""What a model says, read as it comes and handed on as fast as it is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 1_000
"""What waits to be taken; then no more is read."""


class Heard(Generic[T]):
    """Reads a generator in a task of its own: what is ready together comes together.

    Args:
        said: What is read; it is closed when all is read, or nobody takes more.
    """

    def __init__(self, said: AsyncGenerator[T, None]) -> None:
        self._ready: list[T] = []
        self._some = asyncio.Event()
        self._taken = asyncio.Event()
        self._task = asyncio.create_task(self._read(said))
        self._task.add_done_callback(self._ended)

    async def next(self) -> list[T]:
        """Wait for more and give all there is; nothing at the end.

        Raises:
            AgentHostError: The generator raised it, when what came before is taken.
        """
        await self._some.wait()
        if not self._ready:
            await self._task
            return []
        ready, self._ready = self._ready, []
        self._taken.set()
        if not self._task.done():
            self._some.clear()
        return ready

    def leave(self) -> None:
        """Read no more."""
        self._task.cancel()

    async def _read(self, said: AsyncGenerator[T, None]) -> None:
        async with aclosing(said) as pieces:
            async for piece in pieces:
                self._ready.append(piece)
                self._some.set()
                while len(self._ready) >= MOST:
                    self._taken.clear()
                    await self._taken.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            # Who has left does not ask how it ended.
            task.exception()
        self._some.set()
