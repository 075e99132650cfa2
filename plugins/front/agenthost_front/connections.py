"""Every open connection of a server: how many there may be, and how long they rest."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Protocol

from .access import is_loopback


class Open(Protocol):
    """What is counted here: a connection, by the address of its peer."""

    @property
    def address(self) -> str:
        """Whom it comes from."""

    def end(self) -> None:
        """Close it; it has nothing under way."""

    def cancel(self) -> None:
        """End whatever it has under way."""


class Connections:
    """The connections that are open, and those of them that rest.

    A connection rests while no whole request has arrived: before its first, and
    between two. Those that rest are kept in the order in which they began to, so one
    timer serves all.

    Args:
        most: Connections in all.
        per_address: Connections from one address that is not this machine's; an
            IPv6 client counts by its /64.
        patience: Seconds a connection may rest.
    """

    def __init__(self, most: int, per_address: int, patience: float) -> None:
        self._most = most
        self._per_address = per_address
        self._patience = patience
        self._open: set[Open] = set()
        self._resting: dict[Open, float] = {}
        self._counts: Counter[str] = Counter()
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def full(self) -> bool:
        """Whether there may be no more."""
        return len(self._open) >= self._most

    def crowded(self, address: str) -> bool:
        """Tell whether an address has as many as it may have."""
        if is_loopback(address):
            return False
        return self._counts[network_of(address)] >= self._per_address

    def add(self, one: Open) -> None:
        """Count a connection."""
        self._open.add(one)
        self._counts[network_of(one.address)] += 1
        self._nobody.clear()

    def remove(self, one: Open) -> None:
        """Forget one that has ended; forgetting twice does nothing."""
        if one not in self._open:
            return
        self._open.discard(one)
        self._resting.pop(one, None)
        network = network_of(one.address)
        self._counts[network] -= 1
        if not self._counts[network]:
            del self._counts[network]
        if not self._open:
            self._nobody.set()

    def rest(self, one: Open) -> None:
        """Note that a connection waits for a request, and end it if none comes."""
        loop = asyncio.get_running_loop()
        self._resting[one] = loop.time()
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._patience, self._sweep)

    def work(self, one: Open) -> None:
        """Note that a connection has a request."""
        self._resting.pop(one, None)

    def make_room(self) -> bool:
        """End the connection that has rested longest; False when none rests."""
        for one in self._resting:
            del self._resting[one]
            one.end()
            return True
        return False

    async def close(self, patience: float, grace: float) -> None:
        """End those that rest, and after ``patience`` seconds the others too."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        while self.make_room():
            pass
        if not await self._emptied(patience):
            for one in tuple(self._open):
                one.cancel()
            await self._emptied(grace)

    async def _emptied(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._nobody.wait()
        except TimeoutError:
            return False

    def _sweep(self) -> None:
        self._sweeper = None
        loop = asyncio.get_running_loop()
        while self._resting:
            left = next(iter(self._resting.values())) + self._patience - loop.time()
            if left > 0:
                self._sweeper = loop.call_later(left, self._sweep)
                return
            self.make_room()


@lru_cache(maxsize=1024)
def network_of(address: str) -> str:
    """Whom an address counts as: itself, of IPv6 its /64."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is None:
        return str(ip_network((ip, 64), strict=False))
    return address
