"""From a server's settings to a connection that both have agreed on, and its tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from agenthost import EgressPolicy, Host, JsonObject

from .inbox import Inbox, Pulse
from .settings import McpServer
from .wire import (
    CLIENT,
    HANDSHAKES,
    LEGACY,
    MODERN,
    NO_REVISION,
    LoginWanted,
    Lost,
    RpcError,
)

if TYPE_CHECKING:
    import httpx

    from .oauth.door import Door

SECONDS = 15.0
GUESS_SECONDS = 5.0
MOST_TOOLS = 500
MOST_PAGES = 100
QUIET_SECONDS = 300.0
"""A stream of news may be silent for so long."""


class Connection(Protocol):
    """A server that can be spoken to; ``modern`` says in which revision."""

    modern: bool

    async def run(self) -> None:
        """Hear what comes unasked, until :class:`Lost` is raised."""

    def agreed(self, version: str) -> None:
        """Take note of the revision that both speak."""

    async def ask(
        self,
        method: str,
        params: JsonObject,
        pulse: Pulse,
        headers: Mapping[str, str] | None = None,
        /,
    ) -> dict[str, Any]:
        """Ask and wait for the result."""

    async def tell(self, method: str, params: JsonObject) -> None:
        """Notify it."""

    async def reply(self, message: Mapping[str, Any]) -> None:
        """Answer what it has asked."""

    async def close(self) -> None:
        """End it, and whatever it has started."""


async def opened(
    host: Host, server: McpServer, inbox: Inbox, door: Door | None = None
) -> Connection:
    """Open a server's connection; nothing was said yet.

    Raises:
        AgentHostError: It cannot be opened.
    """
    transport = server.transport
    if transport.url is None:
        from .stdio import open_stdio

        return await open_stdio(server, host.environ, host.home, inbox)
    client = _client(host, server, transport.url)
    if transport.type == "sse":
        from .sse import Sse

        return Sse(transport.url, server.headers, client, inbox)
    from .http import Http

    return Http(transport.url, server.headers, client, inbox, door)


async def agree(connection: Connection, able: JsonObject) -> str:
    """Find out which revision the server speaks, and speak that.

    Args:
        connection: A server that nothing was said to yet.
        able: What it may ask this client for in a session.

    Returns:
        The revision.

    Raises:
        RpcError: It speaks none that is known here.
        LoginWanted: It wants a login first.
        Lost: It is gone.
        TimeoutError: It does not answer.
    """
    if connection.modern:
        try:
            return await _discover(connection)
        except LoginWanted:
            # Whoever asks for a login has not said yet which revision it speaks.
            raise
        except (RpcError, TimeoutError):
            connection.modern = False
            return await _shake_hands(connection, able)
    try:
        return await _shake_hands(connection, able)
    except RpcError:
        from .sse import Sse

        if isinstance(connection, Sse):
            raise
        connection.modern = True
        return await _discover(connection)


async def listed(connection: Connection) -> list[dict[str, Any]]:
    """Ask for all tools.

    Raises:
        RpcError: It refuses.
        Lost: It is gone, or its list has no end.
        TimeoutError: It does not answer.
    """
    tools: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        page = await connection.ask("tools/list", params, Pulse(SECONDS))
        found = page.get("tools")
        tools += [each for each in found or () if isinstance(each, dict)]
        if len(tools) > MOST_TOOLS:
            raise Lost(f"it offers more than {MOST_TOOLS} tools")
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return tools
        params = {"cursor": cursor}
    raise Lost(f"its list of tools has more than {MOST_PAGES} pages")


async def _discover(connection: Connection) -> str:
    method = "server/discover"
    try:
        found = await connection.ask(method, {}, Pulse(GUESS_SECONDS))
    except RpcError as error:
        said = error.data.get("supported") if isinstance(error.data, dict) else None
        if (
            error.code != NO_REVISION
            or not isinstance(said, list)
            or MODERN not in said
        ):
            raise
        # It refuses what it says that it supports: so it is asked once more.
        found = await connection.ask(method, {}, Pulse(GUESS_SECONDS))
    versions = found.get("supportedVersions")
    if not isinstance(versions, list) or MODERN not in versions:
        raise RpcError(0, f"it does not speak {MODERN}")
    connection.agreed(MODERN)
    return MODERN


async def _shake_hands(connection: Connection, able: JsonObject) -> str:
    news = {"roots": {"listChanged": True}} if "roots" in able else {}
    said = {
        "protocolVersion": LEGACY,
        "capabilities": {**able, **news},
        "clientInfo": CLIENT,
    }
    answer = await connection.ask("initialize", said, Pulse(SECONDS))
    version = answer.get("protocolVersion")
    if version not in HANDSHAKES:
        raise RpcError(
            0, f"it speaks a revision that is not known here: {version!r:.40}"
        )
    connection.agreed(version)
    await connection.tell("notifications/initialized", {})
    return str(version)


def _client(host: Host, server: McpServer, url: str) -> httpx.AsyncClient:
    # The operator wrote the address by hand, so that it may be a local one.
    named = frozenset({urlsplit(url).hostname or ""})
    quiet = max(QUIET_SECONDS, server.timeout_secs)
    return host.egress.client(EgressPolicy(f"mcp.{server.name}", named, quiet))
