"""A daemon with the suite's fixture, and messages in each of the three forms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest
from agenthost.testing.daemons import Daemons, RunningDaemon

from ..authority import Authority
from ..fixture import Plugin

META = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"


class Speaker:
    """Speaks to ``/mcp`` of a daemon."""

    def __init__(self, daemon: RunningDaemon, headers: Mapping[str, str]) -> None:
        self.daemon = daemon
        self.headers = dict(headers)

    async def post(self, body: Any, **headers: str) -> httpx.Response:
        """Send a message as it is."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent: dict[str, Any] = {"headers": {**self.headers, **named}}
        sent |= {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.daemon.http.post("/mcp", **sent)

    async def bare(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask in the bare form."""
        answer = await self.post(request(method, params))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def modern(
        self, method: str, able: Mapping[str, Any] | None = None, **params: Any
    ) -> httpx.Response:
        """Ask as 2026-07-28 does."""
        message = modern(method, able, **params)
        return await self.post(message, **headers_of(message))

    async def begin(self, version: str = "2025-11-25", **able: Any) -> Speaker:
        """Initialize; who is returned speaks in the session."""
        params = {"protocolVersion": version, "capabilities": able}
        answer = await self.post(request("initialize", params))
        assert answer.status_code == 200, answer.text
        session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        return Speaker(self.daemon, {**self.headers, **session, "accept": BOTH})

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask in a session."""
        answer = await self.post(request(method, params))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def request(method: str, params: Mapping[str, Any], number: Any = 1) -> dict[str, Any]:
    """Write a request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}


def modern(
    method: str, able: Mapping[str, Any] | None = None, **params: Any
) -> dict[str, Any]:
    """Write a request of 2026-07-28, without its headers."""
    meta = {f"{META}protocolVersion": "2026-07-28"}
    told = {**meta, f"{META}clientCapabilities": dict(able or {})}
    return request(method, {**params, "_meta": {**told, **params.get("_meta", {})}})


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers that a request of 2026-07-28 has."""
    params = message["params"]
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
    if (name := params.get("uri", params.get("name"))) is not None:
        headers["mcp-name"] = name
    return headers


@pytest.fixture
async def speaker(daemons: Daemons) -> Speaker:
    """Somebody who speaks to a daemon with the suite's fixture."""
    return Speaker(await daemons.start(plugins=[Plugin()]), {})


@pytest.fixture
async def authority() -> AsyncIterator[Authority]:
    """An authorization server."""
    async with Authority().running() as running:
        yield running
