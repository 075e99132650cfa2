"""The Model Context Protocol: this daemon as a server, and servers as tool sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    Authenticator,
    CommandSpec,
    ConfigSection,
    Host,
    LateRoutes,
    ManifestTable,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    ToolSource,
    hookimpl,
)


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read what clients of ``/mcp`` may do, and the servers of the tools of agents."""
    from .client.settings import McpServers
    from .server.settings import McpSection

    yield ConfigSection("mcp", McpSection)
    yield ConfigSection("mcp_servers", McpServers)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read which servers an agent may use."""
    from .client.manifest import SERVERS

    yield SERVERS


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the tables of servers, and of what was agreed to of them."""
    from .client.schema import SCHEMA

    return SCHEMA


@hookimpl
def register_tool_source() -> Iterable[ToolSource]:
    """Offer the tools of the servers."""
    from .client.source import McpServers

    yield McpServers()


@hookimpl
def register_authenticator() -> Iterable[Authenticator]:
    """Offer to tell who comes with a token of an issuer."""
    from .server.admitting import IssuedTokens

    yield IssuedTokens()


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what ends that which is open for a token once it has expired."""
    from .server.admitting import tokens_of

    async def start(host: Host) -> None:
        await tokens_of(host).start(host)

    async def stop(host: Host) -> None:
        await tokens_of(host).stop()

    yield ServiceSpec("mcp_tokens", start, stop)


@hookimpl
def register_routes() -> Iterable[LateRoutes | RouteGroup]:
    """Offer ``/mcp``, and what people see of servers, and approve."""
    from .client.callback import group as login
    from .server.challenges import group as resource

    yield resource()
    yield login()
    yield LateRoutes("mcp.server", ("/mcp",), _server_routes)
    yield LateRoutes("mcp_servers", ("/api/mcp/servers",), _client_routes)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost mcp`` and ``agenthost mcp-server``."""
    from .client.commands import mcp_server
    from .server.stdio import mcp

    yield CommandSpec(mcp)
    yield CommandSpec(mcp_server)


def _server_routes() -> RouteGroup:
    from .server.routes import group

    return group()


def _client_routes() -> RouteGroup:
    from .client.routes import routes

    return routes
