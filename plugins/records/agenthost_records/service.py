"""What takes out old rows, as long as the daemon runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenthost import Host

FIRST = 300.0
"""Seconds after the start: a daemon that starts often forgets too."""


class RetentionService:
    """Runs the retention of a daemon."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def start(self, host: Host) -> None:
        """Begin; nothing is read yet."""
        self._task = asyncio.create_task(_retain(host), name="retention")

    async def stop(self, _: Host) -> None:
        """End, also in the middle of a pass."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _retain(host: Host) -> None:
    await host.clock.sleep(FIRST)
    from .retention import Retention

    await Retention(host.store, host.clock).run()
