"""What looks after the rows as long as the daemon runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenthost import Host

    from .vigil import Vigil

FIRST = 300.0
"""Seconds after the start: a daemon that starts often forgets too."""


class RetentionService:
    """Runs the retention of a daemon, and its vigil where others share its rows."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._vigil: Vigil | None = None

    async def start(self, host: Host) -> None:
        """Begin; nothing is read yet."""
        self._task = asyncio.create_task(_retain(host), name="retention")
        if host.store.signals is not None:
            from .vigil import Vigil

            self._vigil = Vigil(host)
            self._vigil.begin()

    async def stop(self, _: Host) -> None:
        """End, also in the middle of a pass."""
        if self._vigil is not None:
            await self._vigil.end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _retain(host: Host) -> None:
    await host.clock.sleep(FIRST)
    from .retention import Retention

    await Retention(host.store, host.clock).run()
