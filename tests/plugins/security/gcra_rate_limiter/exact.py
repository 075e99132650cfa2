"""The rule in exact arithmetic, written down without looking at the limiter."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from agenthost import ALLOW, RequestCase
from agenthost_security.gcra_rate_limiter.limiter import Limiter


class Bucket:
    """A bucket that leaks at a steady rate, and takes only what still fits."""

    def __init__(self, units_per_minute: int, burst: int) -> None:
        self._rate = Fraction(units_per_minute, 60)
        self._burst = burst
        self._level = Fraction(0)
        self._at = Fraction(0)

    def takes(self, units: int, now: Fraction) -> bool:
        leaked = (now - self._at) * self._rate
        self._level, self._at = max(self._level - leaked, Fraction(0)), now
        if self._level + min(units, self._burst) > self._burst:
            return False
        self._level += min(units, self._burst)
        return True


def compare(count: int, units: int, burst: int, seed: int) -> Iterator[tuple[int, str]]:
    """Yield each of so many random requests that limiter and bucket judge otherwise."""
    chance, now = random.Random(seed), 0
    limiter = Limiter(lambda: now / 1000, units, burst)
    buckets: dict[str, Bucket] = defaultdict(lambda: Bucket(units, burst))
    clients = [f"10.0.{n}.1" for n in range(40)]
    for number in range(count):
        now += chance.choice([0, 0, 1, 7, 40, 500])
        client, cost = chance.choice(clients), chance.choice([1, 2, 3, 5, 10, 30, 50])
        fits = buckets[client].takes(cost, Fraction(now, 1000))
        case = RequestCase("GET", "/", client, cost)
        if (limiter(case) == ALLOW) != fits:
            yield number, client
