"""The token of a server: shown with each request, and renewed before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import httpx
from agenthost import EgressPolicy, Host

from ...metadata import MOST_BYTES
from ..settings import McpServer
from .asking import LoginRefused, granted, tokens
from .discovery import Challenge, challenge_of
from .grant import Grant, keep, kept

EARLY = 30.0
"""Seconds before its end that a token is renewed."""
SECONDS, IN_ALL = 10.0, 20.0


class Door(httpx.Auth):
    """What a server lets the daemon in for, if it has been logged in.

    Args:
        host: Its vault, its clock and its way out.
        server: The server; its transport has an address.

    Attributes:
        challenge: What the server has said last of the token that it wants.
    """

    def __init__(self, host: Host, server: McpServer) -> None:
        self.host = host
        self.server = server
        self.challenge = Challenge()
        self._renewing: asyncio.Task[str] | None = None

    @property
    def client(self) -> httpx.AsyncClient:
        """What asks authorization servers."""
        written = (
            self.server.transport.url,
            self.server.oauth and self.server.oauth.issuer,
        )
        # The operator wrote these by hand, so that they may be local; what the server
        # names may not.
        named = frozenset(urlsplit(url).hostname or "" for url in written if url)
        name = f"mcp.{self.server.name}.oauth"
        policy = EgressPolicy(name, named, SECONDS, IN_ALL, MOST_BYTES)
        return self.host.egress.client(policy)

    @property
    def grant(self) -> Grant | None:
        """What it was let in with; its tokens may be empty."""
        return kept(self.host.vault, self.server)

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Show the token; where it is taken no more, a new one, once."""
        token = await self._token()
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        answer = yield request
        self._note(answer)
        if answer.status_code != 401 or not token:
            return
        if token := await self._renewed(token):
            # Else httpx would read its body first, however long that is.
            await answer.aclose()
            answer.stream = httpx.ByteStream(b"")
            answer.is_closed = answer.is_stream_consumed = False
            request.headers["Authorization"] = f"Bearer {token}"
            answer = yield request
            self._note(answer)

    def refusal(self, status: int) -> str:
        """Say which login an answer wants of people, "" where none would help."""
        name = self.server.name
        if status == 401:
            return f"it wants a login: agenthost mcp login {name}"
        if status == 403 and self.challenge.error == "insufficient_scope":
            more = self.challenge.scope or "more rights"
            return f"it wants a login with {more}: agenthost mcp login {name}"
        return ""

    async def keep(self, grant: Grant | None) -> None:
        """Show these tokens from now on, or none.

        Raises:
            AgentHostError: The vault takes nothing.
        """
        await self.stop()
        self.challenge = Challenge()
        await keep(self.host.vault, self.server, grant)

    async def stop(self) -> None:
        """Wait until a token that is being renewed is kept."""
        if self._renewing is not None:
            await asyncio.gather(self._renewing, return_exceptions=True)

    def _note(self, answer: httpx.Response) -> None:
        if answer.status_code in (401, 403):
            self.challenge = challenge_of(answer.headers.get_list("www-authenticate"))

    async def _token(self) -> str:
        grant = self.grant
        if grant is None:
            return ""
        due = grant.ends - EARLY
        if grant.refresh and grant.ends > 0 and self.host.clock.time() >= due:
            return await self._renewed(grant.access)
        return grant.access

    async def _renewed(self, old: str) -> str:
        """Give another token than the old one, "" where there is none."""
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(old))
        # Whoever waits may leave: a token that may be shown once would be lost then.
        token = await asyncio.shield(self._renewing)
        return "" if token == old else token

    async def _renew(self, old: str) -> str:
        grant = self.grant
        if grant is None or grant.access != old or not grant.refresh:
            return "" if grant is None else grant.access
        form = {
            "grant_type": "refresh_token",
            "refresh_token": grant.refresh,
            "resource": grant.resource,
        }
        try:
            said = await tokens(self.client, grant.token_endpoint, grant.bearer, form)
        except LoginRefused:
            await keep(self.host.vault, self.server, grant.emptied())
            return ""
        new = granted(grant, said, self.host.clock.time())
        await keep(self.host.vault, self.server, new)
        return new.access
