"""The other processes of a database: which of them have stopped saying they live."""

from __future__ import annotations

from agenthost import AgentHostError, Clock, Store

from .rows import HELD

LOOK = 0.5
"""Seconds between two looks."""
LEASE = 3.0
"""Seconds after which one that has not said that it lives is taken for dead."""
RENEWAL = 1.0
GAP = 4 * LOOK
"""Seconds between two looks after which nothing is known of the time between."""


class Others:
    """Watches the leases of other processes.

    A lease that does not move is timed on this process's own clock: what the others'
    clocks say does not matter.
    """

    def __init__(self, store: Store, clock: Clock, me: str) -> None:
        self._store = store
        self._clock = clock
        self._me = me
        self._looked = 0.0
        self._seen: dict[str, tuple[float, float]] = {}

    async def dead(self) -> list[tuple[str, float]]:
        """Look, and give whose lease has stood still for too long, and where."""
        try:
            rows = await self._store.read(HELD, {"me": self._me})
        except AgentHostError:
            # Whoever cannot read need not be the only one: others could not renew.
            self._seen.clear()
            return []
        now = self._clock.monotonic()
        if now - self._looked > GAP:
            self._seen.clear()
        self._looked = now
        held = {row["holder"]: row["until"] for row in rows}
        before = self._seen
        self._seen = {
            holder: before[holder]
            if holder in before and before[holder][0] == until
            else (until, now)
            for holder, until in held.items()
        }
        return [
            (holder, until)
            for holder, (until, since) in self._seen.items()
            if now - since >= LEASE
        ]
