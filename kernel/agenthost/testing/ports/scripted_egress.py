"""A way out that leads to a script, for tests of what asks others over HTTP."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from ...errors import InvalidInput, OutcomeUnknown, TooLarge, Unavailable
from ...plugins.guards import Guards
from ...plugins.points import AddressCase, Guard, UrlCase
from ...ports.egress import CHECK_HOST, CONTEXT, FINAL_URL, EgressPolicy
from ...providers import Exchange
from ..exchanges import installed_exchange
from ..simulators.script import Reply
from .peer import Asked, Peer

ADDRESS = "192.0.2.1"
"""The address that every name has; it is reserved for examples."""

TO_STRANGERS = ("accept", "accept-language", "user-agent", "content-type")
PORTS = {"http": 80, "https": 443}


class ScriptedEgress:
    """Answers by a script what would leave the daemon, guards and limits included.

    Args:
        guards: Asked at the points ``url`` and ``address``.
        peer: The script.

    Example:
        ::

            peer = Peer()
            peer.answer = lambda asked: Reply([b'{"ok": true}'])
            egress = ScriptedEgress(guards, peer)
            answer = await egress.client(EgressPolicy("probe")).get("http://a.example")
    """

    def __init__(self, guards: Guards, peer: Peer) -> None:
        self.guards = guards
        self.peer = peer
        self.closed = asyncio.Event()
        self.connections = 0
        self._clients: dict[EgressPolicy, httpx.AsyncClient] = {}

    @property
    def exchange(self) -> Exchange:
        """How model calls meet HTTP."""
        return installed_exchange()

    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        """Return the client of a policy.

        Raises:
            Unavailable: It was closed.
        """
        self.check_open()
        if policy not in self._clients:
            nobody = DefaultCookiePolicy(allowed_domains=[])
            self._clients[policy] = httpx.AsyncClient(
                transport=_Script(self, policy), cookies=CookieJar(nobody)
            )
        return self._clients[policy]

    async def warm_up(self) -> None:
        """Do nothing: nothing is loaded later."""

    async def close(self) -> None:
        """Answer no more."""
        self.closed.set()

    def check_open(self) -> None:
        """Refuse what comes after the end.

        Raises:
            Unavailable: It was closed.
        """
        if self.closed.is_set():
            raise Unavailable("outbound requests have ended")


class _Script(httpx.AsyncBaseTransport):
    """The requests of one policy."""

    def __init__(self, egress: ScriptedEgress, policy: EgressPolicy) -> None:
        self._egress = egress
        self._policy = policy
        self._connected: dict[httpx.URL, int] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and follow as many redirects as the policy says."""
        for _ in range(self._policy.max_redirects + 1):
            answer = await self._sent(request)
            if not (self._policy.max_redirects and answer.has_redirect_location):
                return answer
            request = _next(request, answer)
        raise httpx.TooManyRedirects("too many redirects", request=request)

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        self._egress.check_open()
        number = self._connection(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(
            request.method, str(request.url), headers, await request.aread(), number
        )
        reply = self._egress.peer.hear(asked)
        if not reply.status:
            await self._silence(reply, request)
        coded = reply.headers.get("content-encoding") == "gzip"
        kept = {n: v for n, v in reply.headers.items() if n != "content-encoding"}
        return httpx.Response(
            reply.status,
            headers=kept if coded else reply.headers,
            stream=_Body(self._said(reply, request, coded=coded)),
            extensions={FINAL_URL: str(request.url)},
        )

    def _connection(self, request: httpx.Request) -> int:
        """Ask the guards, and tell on which connection it would go."""
        url, context = request.url, request.extensions.get(CONTEXT)
        if url.scheme not in PORTS or url.userinfo or not url.host:
            raise InvalidInput("url", "it must be http(s), without user information")
        if check := request.extensions.get(CHECK_HOST):
            check(url.host)
        port, allowed = url.port or PORTS[url.scheme], self._policy.allowed_hosts
        ask = self._egress.guards.check
        ask(Guard.URL, UrlCase(url.scheme, url.host, port, allowed, context))
        origin = url.copy_with(raw_path=b"/")
        if origin not in self._connected:
            ask(Guard.ADDRESS, AddressCase(url.host, ADDRESS, port, allowed, context))
            self._egress.connections += 1
            self._connected[origin] = self._egress.connections
        return self._connected[origin]

    async def _said(
        self, reply: Reply, request: httpx.Request, *, coded: bool
    ) -> AsyncIterator[bytes]:
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        most, size = self._policy.max_bytes, 0
        for chunk in reply.chunks:
            # One byte over the cap is enough to know.
            plain = inflate.decompress(chunk, (most or 0) + 1) if coded else chunk
            size += len(plain)
            if most is not None and size > most:
                raise TooLarge(f"the answer is over {most} bytes")
            yield plain
        if reply.drop or reply.stall:
            await self._silence(reply, request)

    async def _silence(self, reply: Reply, request: httpx.Request) -> None:
        """Break off, or say nothing until somebody has had enough."""
        # Nothing else takes time here.
        patience = self._policy.timeout
        if self._policy.total_timeout is not None:
            patience = min(patience, self._policy.total_timeout)
        try:
            if reply.stall:
                async with asyncio.timeout(patience):
                    await self._egress.closed.wait()
        except TimeoutError:
            raise httpx.ReadTimeout("no answer in time", request=request) from None
        finally:
            self._egress.peer.left.set()
        raise OutcomeUnknown("the peer broke off; whether it acted is not known")


class _Body(httpx.AsyncByteStream):
    def __init__(self, said: AsyncIterator[bytes]) -> None:
        self._said = said

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._said:
            yield piece


def _next(request: httpx.Request, answer: httpx.Response) -> httpx.Request:
    url = request.url.join(answer.headers["location"])
    rewritten = answer.status_code == 303 or (
        answer.status_code in {301, 302} and request.method == "POST"
    )
    same = url.netloc == request.url.netloc
    headers = {
        name: value
        for name, value in request.headers.items()
        if name not in {"host", "content-length"} and (same or name in TO_STRANGERS)
    }
    return httpx.Request(
        "GET" if rewritten else request.method,
        url,
        headers=headers,
        content=None if rewritten else request.content,
        extensions=request.extensions,
    )
