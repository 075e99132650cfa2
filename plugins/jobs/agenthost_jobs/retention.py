"""How long jobs that have ended are kept."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from agenthost import AgentHostError, Clock, Store

from .rows import EXPIRED

KEPT = 30 * 86_400.0
BETWEEN_PASSES = 3_600.0
BATCH = 20
"""Jobs in one write: their steps go with them."""

log = logging.getLogger(__name__)


class Retention:
    """Forgets jobs 30 days after their end, a few in each write."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._due = 0.0
        self._pass: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look for what is to be forgotten, unless this was done within the hour."""
        now = self._clock.time()
        if now >= self._due:
            self._due = now + BETWEEN_PASSES
            self._pass = asyncio.create_task(self._forget(now - KEPT))

    async def stop(self) -> None:
        """End the pass that runs."""
        if self._pass is not None:
            self._pass.cancel()
            await asyncio.gather(self._pass, return_exceptions=True)

    async def _forget(self, before: float) -> None:
        wanted = {"before": before, "limit": BATCH}
        try:
            while rows := await self._store.read(EXPIRED, wanted):
                from .writes import forget

                jobs = [row["id"] for row in rows]
                await self._store.write(partial(forget, jobs=jobs))
        except AgentHostError as error:
            log.warning("old jobs are kept for another hour: %s", error.message)
