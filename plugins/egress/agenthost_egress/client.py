"""Egress: hands out httpx clients, one for each policy, and closes them at the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agenthost import EgressPolicy, Guards, Unavailable

from .exchange import HttpExchange

if TYPE_CHECKING:
    import httpx

    from .traffic import Traffic

MODELS = "provider:"
"""So the policies of model calls are named."""
ENDED = "outbound requests have ended; the daemon is stopping"


class AiohttpEgress:
    """Everything that leaves the daemon by HTTP leaves through a client from here.

    Args:
        guards: Asked at the points ``url`` and ``address``; while one of them is closed
            nothing leaves.

    Attributes:
        exchange: How model calls meet HTTP.
        traffic: What agents have transferred, once anything is counted.
    """

    def __init__(self, guards: Guards) -> None:
        self.exchange = HttpExchange()
        self._guards = guards
        self.traffic: Traffic | None = None
        self._clients: dict[EgressPolicy, httpx.AsyncClient] = {}
        self._closed = False

    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        """Return the policy's client; it stays open until the daemon ends.

        It keeps no cookies, reads no proxy settings from the environment, and raises
        what ``EgressTransport`` lists.

        Raises:
            Unavailable: ``close`` was called.
        """
        if self._closed:
            raise Unavailable(ENDED)
        client = self._clients.get(policy)
        if client is None:
            client = self._clients[policy] = self._made(policy)
        return client

    def metered(self) -> Traffic:
        """Give what counts the bytes of agents; begin to count."""
        from .traffic import Traffic

        if self.traffic is None:
            self.traffic = Traffic()
        return self.traffic

    def _made(self, policy: EgressPolicy) -> httpx.AsyncClient:
        # A boot need not wait for httpx.
        from .cookies import NoCookies
        from .decode import ACCEPTED
        from .direct import DirectClient
        from .transport import EgressTransport

        # Calls of models have limits of their own.
        traffic = None if policy.name.startswith(MODELS) else self.metered()
        return DirectClient(
            EgressTransport(policy, self._guards, traffic),
            timeout=policy.timeout,
            headers={"Accept-Encoding": ACCEPTED, "User-Agent": "agenthost"},
            cookies=NoCookies(),
            follow_redirects=False,
            trust_env=False,
        )

    async def warm_up(self) -> None:
        """Import in a thread what the first request needs."""
        await asyncio.to_thread(_import_wire)

    async def close(self) -> None:
        """Close every client and its connections."""
        self._closed = True
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()


def _import_wire() -> None:
    import aiohttp  # noqa: F401  (loaded here so that the loop does not wait for it)

    from . import transport  # noqa: F401  (likewise)
