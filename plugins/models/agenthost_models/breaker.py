"""Cool-downs and circuit breakers: who had better not be called just now."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from agenthost import Clock, ProviderError, ProviderFault
from agenthost_values.value_class import value_class

from .waiting import until

Id = tuple[str, str, str]
"""Provider, key (its digest) and model."""

MOST = 1_024
FAILURES = 5
PROBE_SECONDS = 30.0
LONGEST_ASKED = 3_600.0


@value_class
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
    """What is known of a target that has failed; ``asked`` is the vendor's own word."""

    failures: int = 0
    trips: int = 0
    until: float = 0.0
    asked: bool = False
    probed: bool = False
    fault: ProviderFault = ProviderFault.SERVER
    detail: str = ""
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def wake(self) -> None:
        """Let those look again who wait for a change."""
        waiting, self.waiting = self.waiting, []
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)


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

    def asked(self, target: Id) -> bool:
        """Tell whether the vendor itself has asked for the pause."""
        state = self._states.get(target)
        return state is not None and state.asked

    def probed(self, target: Id) -> bool:
        """Tell whether a call probes the target now."""
        state = self._states.get(target)
        return state is not None and state.probed

    def told(self, target: Id, pause: float) -> ProviderError | None:
        """Say again what a target failed with, and how long it rests."""
        state = self._states.get(target)
        if state is None:
            return None
        waits = pause if state.asked else None
        return ProviderError(state.fault, target[0], state.detail, retry_after=waits)

    def resting(self, provider: str, now: float) -> list[tuple[Id, str, float]]:
        """Tell which targets of a provider rest, their fault and seconds to go."""
        return [
            (name, state.fault.value, round(state.until - now, 1))
            for name, state in self._states.items()
            if name[0] == provider and state.until > now
        ]

    async def changed(self, target: Id, clock: Clock, seconds: float) -> None:
        """Wait for news of a target, but no longer than so many seconds."""
        state = self._states.get(target)
        if state is not None:
            woken = asyncio.get_running_loop().create_future()
            state.waiting.append(woken)
            try:
                await until(woken, clock, seconds)
            finally:
                if woken in state.waiting:
                    state.waiting.remove(woken)

    def begin(self, target: Id, now: float) -> None:
        """A call starts; in the half-open state others see it cooling meanwhile."""
        state = self._states.get(target)
        if state is not None and state.trips:
            state.probed = True
            state.until = max(state.until, now + PROBE_SECONDS)

    def abandoned(self, target: Id, now: float) -> None:
        """A call ended without telling anything: another may probe."""
        state = self._states.get(target)
        if state is not None and state.trips:
            state.probed = False
            state.until = min(state.until, now)
            state.wake()

    def succeeded(self, target: Id) -> None:
        """A call answered."""
        state = self._states.pop(target, None)
        if state is not None:
            state.wake()

    def failed(self, target: Id, error: ProviderError, now: float) -> None:
        """A call failed; a fault of the request itself says nothing of the target."""
        rule = RULES.get(error.fault)
        if rule is None:
            self.abandoned(target, now)
            return
        state = self._states.setdefault(target, _State())
        self._states.move_to_end(target)
        state.failures += 1
        state.fault, state.detail = error.fault, error.detail
        state.asked, state.probed = error.retry_after is not None, False
        if error.retry_after is not None:
            state.trips += 1
            state.until = now + min(max(error.retry_after, 0.0), LONGEST_ASKED)
        elif state.trips or state.failures >= rule.failures:
            pause = min(rule.first * 2.0 ** min(state.trips, 16), rule.longest)
            state.trips += 1
            state.until = now + pause
        state.wake()
        while len(self._states) > self._most:
            self._states.popitem(last=False)[1].wake()
