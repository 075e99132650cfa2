"""How many bytes each agent has sent and received of late, and how many it may.

Calls of models are not among them: those are limited in tokens and money. What was
transferred is forgotten when the daemon ends.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable

from agenthost import AgentView, Context, QuotaExceeded

from .manifest import TRAFFIC

HOUR = 3_600.0
SLOT = 60.0
MOST_AGENTS = 4_096


class Meter:
    """What one agent has transferred within an hour, by the minute.

    Args:
        now: A clock that never jumps, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._slots: deque[tuple[float, int]] = deque()
        self._used = 0
        self.limit = 0
        self.name = ""

    def add(self, size: int) -> None:
        """Count bytes that go out or come in.

        Raises:
            QuotaExceeded: It is more than it may transfer; it is counted as well.
        """
        now = self._now()
        while self._slots and self._slots[0][0] <= now - HOUR:
            self._used -= self._slots.popleft()[1]
        if self._slots and now - self._slots[-1][0] < SLOT:
            began, before = self._slots.pop()
            self._slots.append((began, before + size))
        else:
            self._slots.append((now, size))
        self._used += size
        if self._used > self.limit:
            raise QuotaExceeded(
                f"agent {self.name!r}: resources.max_network_bytes_per_hour leaves no "
                f"room: {self._used} bytes of {self.limit}; wait, or raise it"
            )


class Traffic:
    """The meters of one daemon's agents.

    Args:
        now: A clock that never jumps, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._meters: OrderedDict[str, Meter] = OrderedDict()

    def of(self, context: Context | None) -> Meter | None:
        """Give the meter of whoever asks; None where there is no limit."""
        agent = context.agent if context is not None else None
        if agent is None:
            return None
        limit = TRAFFIC.of(agent.manifest).max_network_bytes_per_hour
        return self._meter(agent, limit) if limit else None

    def _meter(self, agent: AgentView, limit: int) -> Meter:
        meter = self._meters.setdefault(agent.id, Meter(self._now))
        self._meters.move_to_end(agent.id)
        if len(self._meters) > MOST_AGENTS:
            self._meters.popitem(last=False)
        meter.name, meter.limit = agent.name, limit
        return meter
