"""Limit what each client may ask of the daemon, before it is known who asks."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING

from agenthost import (
    ALLOW,
    ConfigSection,
    Guard,
    RequestCase,
    SecuritySystem,
    ServiceSpec,
    hookimpl,
)

from .limiter import Limiter

if TYPE_CHECKING:
    from agenthost import Host

_HERE, _ELSEWHERE = "192.0.2.1", ("192.0.2.2", "2001:db8::1", "127.0.0.1")
_NEIGHBOURS = ("2001:db8:0:1::1", "2001:db8:0:1:ffff::1")


def self_test() -> None:
    """Spend what a client has and see it refused, others let in, and time help.

    Raises:
        RuntimeError: A request was judged wrongly.
    """
    now = [0.0]
    limiter = Limiter(lambda: now[0])

    def passes(client: str, cost: int = 1) -> bool:
        return limiter(RequestCase("GET", "/", client, cost)) == ALLOW

    if not passes(_HERE, 500):
        raise RuntimeError("a client was refused what it may spend at once")
    if passes(_HERE):
        raise RuntimeError("a client that has spent everything was let in")
    if not all(passes(client) for client in _ELSEWHERE):
        raise RuntimeError("a client was refused for what another has spent")
    if not passes(_NEIGHBOURS[0], 500) or passes(_NEIGHBOURS[1]):
        raise RuntimeError("addresses of one IPv6 /64 were not counted together")
    now[0] = 6.0
    if not passes(_HERE, 50) or passes(_HERE):
        raise RuntimeError("time did not give back what it should")


async def _begin(host: Host) -> None:
    from .settings import RateLimit

    for _, system in host.registry.offered(SecuritySystem):
        guard: object = system.guards.get(Guard.REQUEST.name)
        if isinstance(guard, Limiter):
            guard.set(host.settings(RateLimit), host.clock.monotonic)
            if why := guard.off():
                host.warnings.append(f"security: {system.name} is not active: {why}")


async def _end(_: Host) -> None:
    """Nothing is left open."""


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read how much a client may ask."""
    from .settings import RateLimit

    yield ConfigSection("rate_limit", RateLimit)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Set the limiter as the configuration says, before the first request."""
    yield ServiceSpec("rate limit", _begin, _end)


@hookimpl
def security_system() -> SecuritySystem:
    """Offer the rate limiter."""
    limiter = Limiter(monotonic)
    return SecuritySystem(
        "gcra_rate_limiter", {Guard.REQUEST: limiter}, self_test, off=limiter.off
    )
