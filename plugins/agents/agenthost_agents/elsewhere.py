"""Agents that other daemons of the database make, change and delete."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agenthost import AgentHostError, Signals

TOPIC = "agents"

log = logging.getLogger(__name__)


class Elsewhere:
    """Tells the other daemons of each change, and reads the rows anew when one tells.

    Args:
        signals: How the daemons reach each other.
        read: Takes the rows as they are.
    """

    def __init__(self, signals: Signals, read: Callable[[], Awaitable[None]]) -> None:
        self._signals = signals
        self._read = read
        self._wanted = False
        self._reading: asyncio.Task[None] | None = None
        signals.listen(TOPIC, self._heard)

    def tell(self) -> None:
        """Say that rows have changed."""
        self._signals.tell(TOPIC)

    def _heard(self, _: str) -> None:
        self._wanted = True
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_again(), name="agents")

    async def _read_again(self) -> None:
        # What is told while this reads is read once more: the rows may be older.
        while self._wanted:
            self._wanted = False
            try:
                await self._read()
            except AgentHostError as error:
                log.warning("agents were not read anew: %s", error.message)
