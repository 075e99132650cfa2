"""Our client before a server that wants a login.

The suite's authorization server lets everybody in at once, so that a request in place
of a person's browser brings the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from agenthost import OPERATOR, Context, Secret, SystemClock
from agenthost_mcp.client.connecting import agree, listed
from agenthost_mcp.client.http import Http
from agenthost_mcp.client.inbox import Inbox, Pulse
from agenthost_mcp.client.oauth.door import Door
from agenthost_mcp.client.oauth.logins import Logins
from agenthost_mcp.client.settings import McpServer
from agenthost_mcp.client.wire import LoginWanted

from ..servers import PATIENCE
from .suite import ONCE, Told

MOST_LOGINS = 3
CIMD = "https://conformance-test.local/client-metadata.json"


class Vault(dict[str, Secret]):
    """A vault in memory."""

    async def change(self, secrets: Mapping[str, str | None]) -> None:
        """Keep and forget."""
        for name, value in secrets.items():
            self.pop(name, None)
            if value is not None:
                self[name] = Secret(value)


def settings(told: Told) -> McpServer:
    """What an operator would have written."""
    oauth: dict[str, Any] = {"redirect_uri": "http://localhost:3000/oauth/callback"}
    if "client_secret" in told.context:
        oauth |= {key: told.context[key] for key in ("client_id", "client_secret")}
    elif "cimd" in told.scenario:
        oauth |= {"client_id": CIMD}
    transport = {"type": "http", "url": told.url}
    said = {"name": "suite", "transport": transport, "oauth": oauth}
    return McpServer.model_validate(said)


async def visit(door: Door, logins: Logins) -> None:
    """Log in as a person would."""
    started = await logins.start(door, Context(OPERATOR))
    async with httpx.AsyncClient(timeout=PATIENCE) as browser:
        answer = await browser.get(started.url)
    query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    _, grant = await logins.finish(query)
    await door.keep(grant)


async def speak(url: str, client: httpx.AsyncClient, door: Door) -> None:
    """Connect, list, call each tool once, leave."""
    connection = Http(url, (), client, Inbox(lambda: None), door)
    hearing = asyncio.create_task(connection.run())
    try:
        await agree(connection, {})
        for tool in await listed(connection):
            asked = {"name": tool["name"], "arguments": {}}
            await connection.ask("tools/call", asked, Pulse(PATIENCE))
    finally:
        hearing.cancel()
        await connection.close()


async def log_in(told: Told) -> None:
    """Speak; where a login is wanted, log in and speak again."""
    async with httpx.AsyncClient(timeout=PATIENCE, limits=ONCE) as client:
        egress = SimpleNamespace(client=lambda _: client)
        host: Any = SimpleNamespace(vault=Vault(), clock=SystemClock(), egress=egress)
        door, logins = Door(host, settings(told)), Logins(host)
        for _ in range(MOST_LOGINS):
            try:
                await speak(told.url, client, door)
            except LoginWanted:
                await visit(door, logins)
            else:
                return
        raise RuntimeError("it wants one login after the other")
