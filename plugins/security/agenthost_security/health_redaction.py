"""What anybody may see tells that the daemon is well, or that it is not, and no more.

The health route, the list of public routes and the layer that writes error bodies are
others' work. This looks at all three: at the running daemon's, once it runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    FrontBackend,
    Mountable,
    Principal,
    PrincipalKind,
    Route,
    RouteGroup,
    SecuritySystem,
    ServiceSpec,
    hookimpl,
)

from .probe import OpenFront, Probe

if TYPE_CHECKING:
    from agenthost import Host

HEALTH = "/api/health"
FIELDS = {"status", "uptime_seconds", "panic_count", "restart_count"}
PUBLIC = {"/", "/static/<path:path>", HEALTH}
RESOURCE = "/.well-known/oauth-protected-resource"
LOGIN = "/oauth/callback"
DOORS = {"/channels/<channel>/<path:rest>", RESOURCE, f"{RESOURCE}/mcp", LOGIN}
"""Public where the configuration or a login opens them; otherwise not there at all."""
SECRETS = ("canary", "/etc/passwd", "SELECT")
TELLTALES = (*SECRETS, "Traceback", "Leak")
CANARY = " ".join(SECRETS)
LOGGER = "agenthost.front"
NOWHERE = "/channels/ /nowhere"


class Leak(Exception):
    """What the probe's own route raises, so that nothing of it is told."""


class Redaction:
    """The proof for one daemon: at first of its error bodies, of all once it runs."""

    def __init__(self) -> None:
        self._host: Host | None = None

    def watch(self, host: Host | None) -> None:
        """Look at a running daemon, or at none any more."""
        self._host = host

    def self_test(self, open_front: OpenFront) -> None:
        """See an error kept secret, and in public nothing but what may be there.

        Args:
            open_front: Opens the backend that serves the daemon.

        Raises:
            RuntimeError: Something was told that is nobody's business.
        """
        asyncio.run(_prove_errors(open_front))
        if self._host is not None:
            _prove_routes(self._host)


async def _prove_errors(open_front: OpenFront) -> None:
    group = RouteGroup("probe")

    @group.get("/api/probe", scope="probe:read", direct=True)
    async def failing(_: Call) -> Answer:
        """Fail."""
        raise Leak(CANARY) from AgentHostError(CANARY)

    probe = Probe(open_front, group)
    with _unlogged(Leak):
        answered = await probe.ask("/api/probe")
    if answered.status != 500:
        raise RuntimeError(f"a fault was answered {answered.status} instead of 500")
    told = f"{answered.body!r} {answered.headers}"
    if any(word in told for word in TELLTALES):
        raise RuntimeError("an error told what it was about")


@contextmanager
def _unlogged(kind: type[Exception]) -> Iterator[None]:
    """Keep faults of one kind out of the log: they are meant."""

    def other(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], kind))

    logger = logging.getLogger(LOGGER)
    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


def _prove_routes(host: Host) -> None:
    ours = {state.key for state in host.plugins.states() if state.first_party}
    for key, route in _routes(host):
        # What others publish, the operator has enabled by name.
        always = route.public and not callable(route.public)
        allowed = PUBLIC if always else DOORS
        if route.public and key in ours and route.path not in allowed:
            raise RuntimeError(f"{route.method} {route.path} is public")
        if callable(route.public) and key in ours and route.public(host, NOWHERE):
            raise RuntimeError(f"{route.method} {route.path} is open to any path")
        if route.path == HEALTH:
            _prove_health(host, route)


def _routes(host: Host) -> Iterator[tuple[str, Route]]:
    for key, group in host.registry.offered(Mountable):  # type: ignore[type-abstract]  # reason: two unlike classes are mounted
        if isinstance(group, RouteGroup):
            yield from ((key, route) for route in group.routes)


def _prove_health(host: Host, route: Route) -> None:
    stranger = Principal(PrincipalKind.ANONYMOUS, "anonymous")
    answer = asyncio.run(_answer(route, Call(host, stranger, "", "", {}, {})))
    if not isinstance(answer, dict) or set(answer) != FIELDS:
        raise RuntimeError(f"{HEALTH} has other fields than it may have")
    if answer["status"] not in {"ok", "degraded"}:
        raise RuntimeError(f"{HEALTH} has another status than ok or degraded")


async def _answer(route: Route, call: Call) -> Any:
    return await route.handler(call)


async def _begin(host: Host) -> None:
    for redaction in _of(host):
        redaction.watch(host)


async def _end(host: Host) -> None:
    for redaction in _of(host):
        redaction.watch(None)


def _of(host: Host) -> Iterator[Redaction]:
    for _, system in host.registry.offered(SecuritySystem):
        owner = getattr(system.self_test, "__self__", None)
        if isinstance(owner, Redaction):
            yield owner


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Look at the daemon itself once it runs."""
    yield ServiceSpec("health redaction", _begin, _end)


@hookimpl
def security_system() -> SecuritySystem:
    """Offer the proof that what is public says little."""
    return SecuritySystem(
        "health_redaction", {}, Redaction().self_test, proves_on=FrontBackend
    )
