"""In which order, how often and after which pauses the targets of a call are tried."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from agenthost import Clock, ProviderError, ProviderFault, Secret, Target
from agenthost_values.value_class import value_class

from .breaker import Breakers, Id

ROUNDS = 3
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
LONGEST_WAIT = 20.0
PATIENCE = 120.0

OF_THE_SERVICE = frozenset(
    {
        ProviderFault.OVERLOADED,
        ProviderFault.TIMEOUT,
        ProviderFault.UNREACHABLE,
        ProviderFault.SERVER,
        ProviderFault.MALFORMED,
    }
)
"""What another key would meet as well."""
PASSING = OF_THE_SERVICE | {ProviderFault.RATE_LIMITED}
OF_THE_KEY = frozenset({ProviderFault.AUTH, ProviderFault.BILLING})


@dataclass(frozen=True)
class Candidate:
    """A target with one of its keys."""

    target: Target
    key: Secret | None

    @cached_property
    def id(self) -> Id:
        """What its failures are remembered by; a new key starts afresh."""
        provider = self.target.provider.facts.slug
        return provider, digest_of(self.key), self.target.model.upstream_id


def digest_of(key: Secret | None) -> str:
    """Name a key, or that there is none, without telling anything of it."""
    secret = key.reveal().encode() if key else b""
    return hashlib.blake2b(secret, digest_size=8).hexdigest()


@value_class
class Patience:
    """How many rounds and calls a message has; a single round has no pauses at all."""

    rounds: int
    calls: int


class Attempts:
    """One call's walk over its candidates.

    What a vendor asked to be left alone is left alone; whoever else cools down is
    tried once at least, by one call at a time. What failed in passing is tried again,
    up to three rounds, with full jitter between them, another key only where the key
    may be the reason. No pause goes beyond ``PATIENCE``.

    Attributes:
        refused: Who was not called, and why.
    """

    def __init__(
        self,
        candidates: list[Candidate],
        breakers: Breakers,
        clock: Clock,
        random: Random,
        patience: Patience,
    ) -> None:
        self.refused: list[tuple[Candidate, ProviderError]] = []
        self._patience = patience
        self._live = candidates
        self._breakers = breakers
        self._clock = clock
        self._random = random
        self._round = self._calls = 0
        self._waiting = self._ordered()
        self._deadline = clock.monotonic() + PATIENCE

    async def next(self) -> Candidate | None:
        """Wait as long as needed and give the next to try; None to give up.

        Its breaker knows that it is being called.
        """
        while self._calls < self._patience.calls:
            while self._waiting:
                candidate = self._waiting.pop(0)
                if await self._may_try(candidate):
                    # Said before anything else runs: others see that it is probed.
                    self._breakers.begin(candidate.id, self._clock.monotonic())
                    self._calls += 1
                    return candidate
            self._round += 1
            if self._round >= self._patience.rounds or not self._live:
                return None
            self._waiting = self._ordered()
            most = min(FIRST_PAUSE * 2.0**self._round, LONGEST_PAUSE)
            pause = self._random.uniform(0.0, most)
            if self._clock.monotonic() + pause > self._deadline:
                return None
            await self._clock.sleep(pause)
        return None

    def failed(self, candidate: Candidate, error: ProviderError) -> None:
        """Strike out what another try cannot help."""
        target = candidate.target
        if error.fault in OF_THE_SERVICE:
            left = [each for each in self._waiting if each.target != target]
            self._waiting = left
        elif error.fault in OF_THE_KEY:
            self._strike(lambda other: other is candidate)
        elif error.fault not in PASSING:
            self._strike(lambda other: other.target == target)

    async def _may_try(self, candidate: Candidate) -> bool:
        """Wait until the candidate may be called; False when that is too long."""
        if self._patience.rounds == 1:
            return True
        breakers, waited = self._breakers, self._round > 0
        while ready := breakers.ready_at(candidate.id):
            pause = ready - self._clock.monotonic()
            if pause <= 0:
                break
            left = self._deadline - self._clock.monotonic()
            probed = breakers.probed(candidate.id)
            if not probed and pause > min(LONGEST_WAIT, left):
                # Nobody asked for this pause: one call may look, but each only once.
                if not waited and not breakers.asked(candidate.id):
                    return True
                self._refuse(candidate, pause)
                return False
            if left <= 0:
                self._refuse(candidate, pause)
                return False
            await breakers.changed(candidate.id, self._clock, min(pause, left))
            waited = True
        return True

    def _refuse(self, candidate: Candidate, pause: float) -> None:
        told = self._breakers.told(candidate.id, pause)
        if told is not None:
            self.refused.append((candidate, told))

    def _ordered(self) -> list[Candidate]:
        if len(self._live) < 2:
            return self._live[:]
        now = self._clock.monotonic()
        ready = self._breakers.ready_at
        return sorted(self._live, key=lambda each: max(ready(each.id), now))

    def _strike(self, unfit: Callable[[Candidate], bool]) -> None:
        self._live = [each for each in self._live if not unfit(each)]
        self._waiting = [each for each in self._waiting if not unfit(each)]
