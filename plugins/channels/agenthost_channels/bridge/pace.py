"""How often something may come: one number for each who sends it."""

from __future__ import annotations

import math
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from agenthost import RateLimited

MINUTE = 60.0
REMEMBERED = 10_000
_ROUNDING = 1e-6


class Pace:
    """So many a minute, and as many at once (GCRA).

    Args:
        monotonic: Seconds of a clock that never jumps.
        per_minute: How many.
        refusal: What is said to one who is over it, with ``{wait}`` for the seconds.
    """

    def __init__(
        self, monotonic: Callable[[], float], per_minute: int, refusal: str
    ) -> None:
        self._monotonic = monotonic
        self._most = per_minute
        self._one = MINUTE / per_minute
        self._refusal = refusal
        self._paid_off: dict[str, float] = {}

    def take(self, who: str = "") -> None:
        """Count one.

        Raises:
            RateLimited: It is one too many; it is not counted.
        """
        now = self._monotonic()
        before = max(self._paid_off.get(who, now), now)
        wait = before + self._one - now - MINUTE
        if wait > _ROUNDING:
            seconds = math.ceil(wait)
            said = self._refusal.format(wait=seconds)
            raise RateLimited(said, (self._most, 0, seconds))
        if who not in self._paid_off and len(self._paid_off) >= REMEMBERED:
            self._forget(now)
        self._paid_off[who] = before + self._one

    def give_back(self, who: str) -> None:
        """Count one less."""
        if who in self._paid_off:
            self._paid_off[who] -= self._one

    def _forget(self, now: float) -> None:
        owing = {who: due for who, due in self._paid_off.items() if due > now}
        if len(owing) >= REMEMBERED:
            # Whoever owes least has least to gain from being forgotten.
            del owing[min(owing, key=owing.__getitem__)]
        self._paid_off = owing


def network(address: str) -> str:
    """Name who has an address: of IPv6 a /64 is one."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(ip, IPv6Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return ip.packed[:8].hex()
