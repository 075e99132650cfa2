"""How many bytes each agent has sent and received of late, and how many it may.

Calls of models are not among them: those are limited in tokens and money.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from agenthost import Context, QuotaExceeded

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
        self.written = True

    @property
    def slots(self) -> Sequence[tuple[float, int]]:
        """When each minute began, and what was transferred in it, oldest first."""
        return [*self._slots]

    def recall(self, began: float, size: int) -> None:
        """Count what an earlier process has transferred."""
        self._slots.append((began, size))
        self._slots = deque(sorted(self._slots))
        self._used += size

    def add(self, size: int) -> None:
        """Count bytes that go out or come in.

        Raises:
            QuotaExceeded: It is more than it may transfer; it is counted as well.
        """
        now = self._now()
        self.written = False
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
        if not limit:
            return None
        meter = self.meter(agent.id)
        meter.name, meter.limit = agent.name, limit
        return meter

    def recall(self, now: float, rows: Iterable[tuple[str, float, int]]) -> None:
        """Count what earlier processes have transferred.

        Args:
            now: The time of day.
            rows: The agent, the time of day at which a minute began, its bytes.
        """
        passed = self._now() - now
        for agent_id, at, size in rows:
            self.meter(agent_id).recall(at + passed, size)

    def changed(self, now: float) -> Mapping[str, Sequence[tuple[float, int]]]:
        """Give the minutes of agents that are not on disk, by the time of day."""
        passed = now - self._now()
        changed = {}
        for agent_id, meter in self._meters.items():
            if not meter.written:
                meter.written = True
                changed[agent_id] = [(at + passed, size) for at, size in meter.slots]
        return changed

    def unwritten(self, agents: Iterable[str]) -> None:
        """They could not be put on disk: they are to be, the next time."""
        for agent_id in agents:
            if agent_id in self._meters:
                self._meters[agent_id].written = False

    def meter(self, agent_id: str) -> Meter:
        """Give an agent's meter; of too many, who asked longest ago loses theirs."""
        meter = self._meters.setdefault(agent_id, Meter(self._now))
        self._meters.move_to_end(agent_id)
        if len(self._meters) > MOST_AGENTS:
            self._meters.popitem(last=False)
        return meter
