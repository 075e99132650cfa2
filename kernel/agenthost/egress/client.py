"""Egress: hands out httpx clients, one for each policy, and closes them at the end."""

from __future__ import annotations

from http.client import HTTPResponse
from http.cookiejar import CookieJar
from urllib.request import Request

import httpx

from ..errors import Unavailable
from ..plugins.guards import Guards
from .decode import ACCEPTED
from .faults import ENDED
from .policy import EgressPolicy
from .transport import EgressTransport


class Egress:
    """Everything that leaves the daemon by HTTP leaves through a client from here.

    Args:
        guards: Asked at the points ``url`` and ``address``; without a healthy guard
            there, nothing leaves.
    """

    def __init__(self, guards: Guards) -> None:
        self._guards = guards
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
            client = self._clients[policy] = _client(policy, self._guards)
        return client

    async def close(self) -> None:
        """Close every client and its connections."""
        self._closed = True
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()


class _NoCookies(CookieJar):
    """A jar that keeps nothing: clients are shared by callers who share no state."""

    def extract_cookies(self, response: HTTPResponse, request: Request) -> None:
        """Leave the answer's cookies to whoever asked."""


def _client(policy: EgressPolicy, guards: Guards) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=EgressTransport(policy, guards),
        timeout=policy.timeout,
        headers={"Accept-Encoding": ACCEPTED, "User-Agent": "agenthost"},
        cookies=_NoCookies(),
        follow_redirects=False,
        trust_env=False,
    )
