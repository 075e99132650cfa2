"""An MCP server that wants a token, and daemons that stand before it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import jwt
from agenthost.testing.daemons import Daemons, RunningDaemon
from aiohttp import web

from ..authority import Authority, rsa_key
from .fake_http import FakeHttp
from .servers import owner_of, tools_of, until

METADATA = "/.well-known/oauth-protected-resource/mcp"
WANTED = "it wants a login: agenthost mcp login t"


class Guarded(FakeHttp):
    """It; ``shown`` are the tokens of requests, in order.

    Attributes:
        says: What its metadata says differently.
        wants: The scopes that a token needs.
        revoked: Tokens that are good no more.
        endless: Whether the body of a refusal never ends.
    """

    def __init__(self, authority: Authority) -> None:
        super().__init__("modern")
        self.authority = authority
        self.says: dict[str, Any] = {}
        self.shown: list[str] = []
        self.wants = {"mcp:use"}
        self.revoked: set[str] = set()
        self.endless = False

    def app(self) -> web.Application:
        """What serves it, and its metadata."""
        app = super().app()
        app.middlewares.append(self._guard)
        app.router.add_get(METADATA, self._metadata)
        return app

    async def _metadata(self, _: web.Request) -> web.Response:
        told = {"resource": self.url, "authorization_servers": [self.authority.issuer]}
        return web.json_response({**told, **self.says})

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if request.path == METADATA:
            return await handler(request)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        self.shown.append(token)
        place = self.url.removesuffix("/mcp") + METADATA
        told = f'Bearer resource_metadata="{place}", scope="{" ".join(self.wants)}"'
        try:
            key = rsa_key("k1").public_key()
            said = jwt.decode(token, key, ["RS256"], audience=self.url)
        except jwt.InvalidTokenError:
            return await self._refuse(request, 401, told)
        if scheme != "Bearer" or token in self.revoked:
            return await self._refuse(request, 401, told)
        if not self.wants <= set(said["scope"].split()):
            more = f'{told}, error="insufficient_scope"'
            return await self._refuse(request, 403, more)
        return await handler(request)

    async def _refuse(
        self, request: web.Request, status: int, told: str
    ) -> web.StreamResponse:
        answer = web.StreamResponse(status=status, headers={"WWW-Authenticate": told})
        await answer.prepare(request)
        while self.endless and request.transport and not request.transport.is_closing():
            await answer.write(b"x" * 65_536)
        return answer


def config(server: Guarded, oauth: dict[str, Any] | None = None) -> str:
    """Its table of ``[[mcp_servers]]``."""
    told = "".join(f"{k} = {json.dumps(v)}\n" for k, v in (oauth or {}).items())
    table = f"[mcp_servers.oauth]\n{told}" if oauth else ""
    transport = f'{{ type = "http", url = "{server.url}" }}'
    return f'[[mcp_servers]]\nname = "t"\ntransport = {transport}\n{table}'


async def outside(
    daemons: Daemons, server: Guarded, oauth: dict[str, Any] | None = None, **facts: Any
) -> RunningDaemon:
    """Start a daemon that stands before the server, and has no token."""
    daemon = await daemons.start(config=config(server, oauth), **facts)
    await until(lambda: WANTED in owner_of(daemon, "t").reason)
    return daemon


async def begin(daemon: RunningDaemon) -> httpx.Response:
    """Begin a login."""
    return await daemon.http.post("/api/mcp/servers/t/login")


async def answer_of(daemon: RunningDaemon) -> dict[str, str]:
    """Begin a login, say yes as a person would, and give what the browser brings."""
    started = await begin(daemon)
    assert started.status_code == 200, started.text
    async with _browser() as browser:
        answer = await browser.get(started.json()["url"])
    assert answer.status_code == 302, answer.text
    place = answer.headers["location"]
    assert place.startswith(started.json()["redirect_uri"] + "?")
    return dict(parse_qsl(urlsplit(place).query))


async def bring(daemon: RunningDaemon, query: dict[str, str]) -> httpx.Response:
    """Come back to the daemon as the browser does: without a key."""
    async with _browser() as browser:
        return await browser.get(f"{daemon.url}/oauth/callback", params=query)


def _browser() -> httpx.AsyncClient:
    # Certificates are not read for a plain connection: that takes 20 ms.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncClient(trust_env=False, verify=context)


async def logged_in(daemon: RunningDaemon) -> None:
    """Log in, and wait until the server is connected and its tools are offered."""
    back = await bring(daemon, await answer_of(daemon))
    assert back.status_code == 200, back.text
    await until(lambda: owner_of(daemon, "t").state == "connected")
    await until(lambda: bool(tools_of(daemon)))
