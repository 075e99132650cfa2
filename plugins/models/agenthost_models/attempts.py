"""In which order, how often and after which pauses the targets of a call are tried."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from agenthost import Clock, ProviderError, ProviderFault, Secret, Target

from .breaker import Breakers, Id

ROUNDS = 3
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
LONGEST_WAIT = 20.0
PATIENCE = 120.0

PASSING = frozenset(
    {
        ProviderFault.RATE_LIMITED,
        ProviderFault.OVERLOADED,
        ProviderFault.TIMEOUT,
        ProviderFault.UNREACHABLE,
        ProviderFault.SERVER,
        ProviderFault.MALFORMED,
    }
)
OF_THE_KEY = frozenset({ProviderFault.AUTH, ProviderFault.BILLING})


@dataclass(frozen=True)
class Candidate:
    """A target with one of its keys."""

    target: Target
    key: Secret | None

    @cached_property
    def id(self) -> Id:
        """What its failures are remembered by; a new key starts afresh."""
        secret = self.key.reveal().encode() if self.key else b""
        digest = hashlib.blake2b(secret, digest_size=8).hexdigest()
        provider = self.target.provider.facts.slug
        return provider, digest, self.target.model.upstream_id


class Attempts:
    """One call's walk over its candidates.

    Every candidate is tried at least once, whatever the breakers say: they change the
    order and the pauses. What failed in passing is tried again, up to three rounds,
    with full jitter between them. No pause goes beyond ``PATIENCE``. A single round
    has no pauses at all.
    """

    def __init__(
        self,
        candidates: list[Candidate],
        breakers: Breakers,
        clock: Clock,
        random: Random,
        rounds: int = ROUNDS,
    ) -> None:
        self._rounds = rounds
        self._live = candidates
        self._breakers = breakers
        self._clock = clock
        self._random = random
        self._round = 0
        self._waiting = self._ordered()
        self._deadline = clock.monotonic() + PATIENCE

    async def next(self) -> Candidate | None:
        """Wait as long as needed and give the next to try; None to give up."""
        while True:
            while self._waiting:
                candidate = self._waiting.pop(0)
                if await self._may_try(candidate):
                    return candidate
            self._round += 1
            if self._round >= self._rounds or not self._live:
                return None
            self._waiting = self._ordered()
            most = min(FIRST_PAUSE * 2.0**self._round, LONGEST_PAUSE)
            pause = self._random.uniform(0.0, most)
            if self._clock.monotonic() + pause > self._deadline:
                return None
            await self._clock.sleep(pause)

    def failed(self, candidate: Candidate, error: ProviderError) -> None:
        """Strike out what another try cannot help."""
        if error.fault in PASSING:
            return
        if error.fault in OF_THE_KEY:
            self._strike(lambda other: other is candidate)
        else:
            self._strike(lambda other: other.target == candidate.target)

    async def _may_try(self, candidate: Candidate) -> bool:
        now = self._clock.monotonic()
        pause = self._breakers.ready_at(candidate.id) - now
        if pause <= 0 or self._rounds == 1:
            return True
        if pause > LONGEST_WAIT or now + pause > self._deadline:
            return self._round == 0
        await self._clock.sleep(pause)
        return True

    def _ordered(self) -> list[Candidate]:
        now = self._clock.monotonic()
        ready = self._breakers.ready_at
        return sorted(self._live, key=lambda each: max(ready(each.id), now))

    def _strike(self, unfit: Callable[[Candidate], bool]) -> None:
        self._live = [each for each in self._live if not unfit(each)]
        self._waiting = [each for each in self._waiting if not unfit(each)]
