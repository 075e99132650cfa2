"""Cool-downs and circuit breakers: who had better not be called just now."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

from agenthost import ProviderError, ProviderFault

Id = tuple[str, str, str]
"""Provider, key (its digest) and model."""

MOST = 1_024
FAILURES = 5
PROBE_SECONDS = 30.0
LONGEST_ASKED = 300.0


@dataclass(frozen=True, slots=True)
class Rule:
    """After how many failures in a row to cool down, and for how long."""

    failures: int
    first: float
    longest: float


UNWELL = Rule(FAILURES, 5.0, 120.0)
LIMITED = Rule(1, 2.0, 60.0)
REFUSED = Rule(1, 60.0, 600.0)
RULES = {
    ProviderFault.OVERLOADED: UNWELL,
    ProviderFault.TIMEOUT: UNWELL,
    ProviderFault.UNREACHABLE: UNWELL,
    ProviderFault.SERVER: UNWELL,
    ProviderFault.MALFORMED: UNWELL,
    ProviderFault.RATE_LIMITED: LIMITED,
    ProviderFault.AUTH: REFUSED,
    ProviderFault.BILLING: REFUSED,
    ProviderFault.MODEL_NOT_FOUND: REFUSED,
}


@dataclass(slots=True)
class _State:
    failures: int = 0
    trips: int = 0
    until: float = 0.0


class Breakers:
    """Remembers failures by provider, key and model; what succeeds is forgotten.

    Closed: nothing is known, or too few failures. Open: cooling until a moment. Half
    open: that moment has passed and one call probes, which :meth:`begin` reserves.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._states: OrderedDict[Id, _State] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def states(self, now: float) -> Counter[tuple[str, str]]:
        """Count those that are not closed, by provider and state."""
        return Counter(
            (target[0], "open" if state.until > now else "half_open")
            for target, state in self._states.items()
            if state.trips
        )

    def ready_at(self, target: Id) -> float:
        """Tell from when on the target may be called; 0 is always."""
        state = self._states.get(target)
        return state.until if state else 0.0

    def begin(self, target: Id, now: float) -> None:
        """A call starts; in the half-open state others see it cooling meanwhile."""
        state = self._states.get(target)
        if state is not None and state.trips:
            state.until = max(state.until, now + PROBE_SECONDS)

    def abandoned(self, target: Id, now: float) -> None:
        """A call ended without telling anything: another may probe."""
        state = self._states.get(target)
        if state is not None and state.trips:
            state.until = min(state.until, now)

    def succeeded(self, target: Id) -> None:
        """A call answered."""
        self._states.pop(target, None)

    def failed(self, target: Id, error: ProviderError, now: float) -> None:
        """A call failed; a fault of the request itself says nothing of the target."""
        rule = RULES.get(error.fault)
        if rule is None:
            self.abandoned(target, now)
            return
        state = self._states.setdefault(target, _State())
        self._states.move_to_end(target)
        state.failures += 1
        if error.retry_after is not None:
            state.trips += 1
            state.until = now + min(max(error.retry_after, 0.0), LONGEST_ASKED)
        elif state.trips or state.failures >= rule.failures:
            pause = min(rule.first * 2.0 ** min(state.trips, 16), rule.longest)
            state.trips += 1
            state.until = now + pause
        while len(self._states) > self._most:
            self._states.popitem(last=False)
