"""How long occasions that have ended are kept: 30 days, and 1,000 of a source."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from agenthost import AgentHostError, Host

from .purses import DAY, day_of

KEPT = 30 * DAY
MOST = 1_000
BATCH = 200
BETWEEN = 3_600.0

log = logging.getLogger(__name__)


class Retention:
    """Forgets occasions in small writes, at most once an hour.

    Args:
        host: The daemon.
        most: How many that have ended are kept of a source.
    """

    def __init__(self, host: Host, most: int = MOST) -> None:
        self._host = host
        self._most = most
        self._due = 0.0
        self._pass: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look for what is to be forgotten, unless this was done within the hour."""
        now = self._host.clock.time()
        if now >= self._due:
            self._due = now + BETWEEN
            self._pass = asyncio.create_task(self._forget_all(now))

    async def stop(self) -> None:
        """End the pass that runs."""
        if self._pass is not None:
            self._pass.cancel()
            await asyncio.gather(self._pass, return_exceptions=True)

    async def _forget_all(self, now: float) -> None:
        try:
            await self.forget(now)
        except AgentHostError as error:
            log.warning("old occasions are kept for now: %s", error.message)

    async def forget(self, now: float) -> None:
        """Delete what is old, and what is over the most of a source.

        Raises:
            AgentHostError: The store cannot be read or written.
        """
        from .tables import BEYOND, CROWDED, OLD

        store = self._host.store
        wanted = {"before": now - KEPT, "limit": BATCH}
        while rows := await store.read(OLD, wanted):
            await self._delete([row["id"] for row in rows])
        for source in await store.read(CROWDED, {"most": self._most}):
            over = {name: source[name] for name in ("source", "source_id")}
            over |= {"most": self._most, "limit": BATCH, "day": day_of(now)}
            while rows := await store.read(BEYOND, over):
                await self._delete([row["id"] for row in rows])

    async def _delete(self, ids: list[str]) -> None:
        from .writes import forget

        await self._host.store.write(partial(forget, ids=ids))
