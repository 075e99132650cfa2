"""The other processes of a database: which of them have stopped saying they live."""

from __future__ import annotations

from agenthost import AgentHostError, Clock, Store
from agenthost_values.stillness import Stillness

from .rows import HELD

LOOK = 0.5
"""Seconds between two looks."""
LEASE = 3.0
"""Seconds after which one that has not said that it lives is taken for dead."""
RENEWAL = 1.0


class Others:
    """Watches the leases of other processes."""

    def __init__(self, store: Store, clock: Clock, me: str) -> None:
        self._store = store
        self._clock = clock
        self._me = me
        self.every = LOOK
        self._leases = Stillness(LEASE, gap=4 * LOOK)

    async def dead(self) -> list[tuple[str, float]]:
        """Look, and give whose lease has stood still for too long, and where."""
        try:
            rows = await self._store.read(HELD, {"me": self._me})
        except AgentHostError:
            # Whoever cannot read need not be the only one: others could not renew.
            self._leases.forget()
            return []
        held = {row["holder"]: row["until"] for row in rows}
        return self._leases.look(self._clock.monotonic(), held)
