"""The aiohttp session of one policy: every address passes the guard before connect."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agenthost import AddressCase, Blocked, Context, EgressPolicy, Guard, Guards

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import ResolveResult

# The socket factory is told an address only; the name it stands for, and the context
# of the request, ride here. The connector resolves and connects inside the task of the
# request that needs the connection, or in tasks made there, so both see what that
# request has set and never another's. Without it no socket is made.
ASKED: ContextVar[tuple[str, Context | None]] = ContextVar("egress_asked")
_HEADER_BYTES = 32 * 1024
_KEEP_ALIVE = 15.0
_CONNECTIONS = 512
_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class AddressCheck:
    """Ask the address guard point for the sockets of one policy."""

    def __init__(self, policy: EgressPolicy, guards: Guards) -> None:
        self._policy = policy
        self._guards = guards

    def check(self, address: str, port: int) -> None:
        """Refuse an address that a guard does not let through.

        Raises:
            Blocked: A guard refused, the point is closed, or no request asked for it.
        """
        asked = ASKED.get(None)
        if asked is None:
            raise Blocked("a connection that no request asked for was refused")
        host, context = asked
        allowed = self._policy.allowed_hosts
        case = AddressCase(host, address, port, allowed, context)
        self._guards.check(Guard.ADDRESS, case)

    def socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Make the socket for an address that passes, literal or resolved."""
        family, kind, protocol, _, place = info
        self.check(place[0], place[1])
        return socket.socket(family, kind, protocol)


async def open_session(policy: EgressPolicy, guards: Guards) -> aiohttp.ClientSession:
    """Open the session; the imports it needs happen off the event loop."""
    context = await asyncio.to_thread(_prepare)
    return _session(policy, AddressCheck(policy, guards), context)


def _prepare() -> ssl.SSLContext:
    from . import wire  # noqa: F401  (loaded here so that the loop does not wait for it)

    return ssl.create_default_context()


def _session(
    policy: EgressPolicy, check: AddressCheck, context: ssl.SSLContext
) -> aiohttp.ClientSession:
    import aiohttp

    from .wire import Connector

    connector = Connector(
        resolver=_resolver(check),
        use_dns_cache=False,
        socket_factory=check.socket,
        ssl=context,
        limit=_CONNECTIONS,
        keepalive_timeout=_KEEP_ALIVE,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=limits(policy.total_timeout, policy.timeout, policy.timeout),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=_OWN_HEADERS,
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
    )


def limits(
    total: float | None, connect: float | None, read: float | None
) -> aiohttp.ClientTimeout:
    """Say how long a request may take, a connection, and each piece of an answer."""
    import aiohttp

    return aiohttp.ClientTimeout(
        total=total,
        connect=connect,
        sock_connect=connect,
        sock_read=read,
        # Shorter ones are kept to the moment; aiohttp rounds up what is longer.
        ceil_threshold=3600,
    )


def _resolver(check: AddressCheck) -> aiohttp.abc.AbstractResolver:
    """Make a resolver that refuses a name unless every one of its addresses passes."""
    from aiohttp.abc import AbstractResolver

    class CheckedResolver(AbstractResolver):
        async def resolve(
            self,
            host: str,
            port: int = 0,
            family: socket.AddressFamily = socket.AF_UNSPEC,
        ) -> list[ResolveResult]:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, family=family, type=socket.SOCK_STREAM
            )
            for *_, place in found:
                check.check(str(place[0]), port)
            return [_result(host, info) for info in found]

        async def close(self) -> None:
            """Hold nothing."""

    return CheckedResolver()


def _result(host: str, info: tuple[Any, ...]) -> ResolveResult:
    family, _, protocol, _, place = info
    return {
        "hostname": host,
        "host": place[0],
        "port": place[1],
        "family": family,
        "proto": protocol,
        "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    }
