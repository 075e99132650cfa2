"""How long responses are kept: 30 days behind the last of their conversation."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from agenthost import AgentHostError, Host

KEPT = 30 * 86_400.0
ANSWERS_KEPT = 86_400.0
BATCH = 200
FIRST = 60.0
BETWEEN = 3_600.0
PAUSE = 0.05
"""Seconds between two writes, which leave the disk to everybody else."""

log = logging.getLogger(__name__)


class Retention:
    """Forgets responses in small writes, once an hour.

    Args:
        host: The daemon.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, some time behind the start."""
        self._task = asyncio.create_task(self._run(), name="old responses")

    async def stop(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        await self._host.clock.sleep(FIRST)
        while True:
            try:
                await self.forget()
            except AgentHostError as error:
                log.warning("old responses are kept for now: %s", error.message)
            await self._host.clock.sleep(BETWEEN)

    async def forget(self) -> None:
        """Delete what is old now: responses, and answers that have a key.

        Raises:
            AgentHostError: The store cannot be read or written.
        """
        from ..answers import forget as forget_answers
        from .tables import OLD
        from .writes import forget

        host = self._host
        outdated = host.clock.time() - ANSWERS_KEPT
        await host.store.write(partial(forget_answers, before=outdated))
        wanted = {"before": host.clock.time() - KEPT, "limit": BATCH}
        while rows := await host.store.read(OLD, wanted):
            ids = [row["id"] for row in rows]
            await host.store.write(partial(forget, ids=ids))
            await host.clock.sleep(PAUSE)
