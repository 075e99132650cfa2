"""How often keys were used and refused; each is named by its place, never itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agenthost import ProviderFault, Secret

from .attempts import OF_THE_KEY, digest_of
from .breaker import MOST, Id

REFUSALS = OF_THE_KEY | {ProviderFault.RATE_LIMITED}

Gauge = tuple[str, Mapping[str, str], float]


class Uses:
    """The counts of keys; no more than ``MOST`` are kept, then all begin anew.

    Models are counted apart: anybody can name as many as they like.
    """

    def __init__(self) -> None:
        self._models: Counter[Id] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._refusals: Counter[tuple[str, str, str]] = Counter()

    def ended(self, used: Id) -> None:
        """A call with a key has ended, whatever came of it."""
        self._calls[used[:2]] += 1
        self._models[used] += 1
        for counts in (self._models, self._calls):
            if len(counts) > MOST:
                counts.clear()

    def failed(self, used: Id, fault: ProviderFault) -> None:
        """It has failed; the key was refused where the fault is of a key."""
        if fault in REFUSALS:
            provider, digest, _ = used
            self._refusals[provider, digest, fault.value] += 1
            if len(self._refusals) > MOST:
                self._refusals.clear()

    def of(self, used: Id) -> int:
        """Tell how often a key was used for a model."""
        return self._models[used]

    @property
    def providers(self) -> list[str]:
        """Those that were called, by name."""
        return sorted({provider for provider, _ in self._calls})

    def gauges(self, provider: str, keys: Sequence[Secret]) -> Iterator[Gauge]:
        """Tell the calls and refusals of each of a provider's keys in force."""
        for digest, slot in slots(keys).items():
            named = {"provider": provider, "key": str(slot)}
            yield "model_key_calls_total", named, self._calls[provider, digest]
            for fault in sorted(REFUSALS):
                refused = self._refusals[provider, digest, fault.value]
                outcome = {**named, "outcome": fault.value}
                yield "model_key_refusals_total", outcome, refused


def slots(keys: Sequence[Secret]) -> dict[str, int]:
    """Number keys by their digests, from 1 in the order they are tried; 0 is no key."""
    found = {digest_of(key): slot for slot, key in enumerate(keys, 1)}
    return found or {digest_of(None): 0}
