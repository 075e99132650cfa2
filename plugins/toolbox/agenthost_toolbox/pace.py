"""How fast agents call tools."""

from __future__ import annotations

from collections import deque

MINUTE = 60.0


class Pace:
    """How many calls each agent began within the last minute."""

    def __init__(self) -> None:
        self._begun: dict[str, deque[float]] = {}

    def wait(self, agent_id: str, limit: int, now: float) -> float:
        """Count a call that begins now.

        Args:
            agent_id: Whose call it is.
            limit: Calls a minute; 0 is no limit.
            now: A monotonic time in seconds.

        Returns:
            0 when it may begin, else the seconds until one may; it is not counted.
        """
        if limit <= 0:
            return 0.0
        begun = self._begun.setdefault(agent_id, deque())
        while begun and begun[0] <= now - MINUTE:
            begun.popleft()
        if len(begun) >= limit:
            return begun[0] + MINUTE - now
        begun.append(now)
        return 0.0

    def forget(self, agent_id: str) -> None:
        """Forget a deleted agent."""
        self._begun.pop(agent_id, None)
