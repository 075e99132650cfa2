"""The REST surface: the servers, what waits for approval, and the yes to it."""

from __future__ import annotations

from agenthost import Answer, Call, Context, Host, NotFound, RouteGroup, ToolSource

from .owner import Owner
from .pins import digest_of_all
from .shapes import Approve, ServerList, ServerShown
from .source import McpServers, described

routes = RouteGroup("mcp_servers")


@routes.get("/api/mcp/servers", scope="mcp:read", answer=ServerList)
async def list_servers(call: Call) -> Answer:
    """List the MCP servers of the configuration, their tools and what waits."""
    servers = [_shown(each) for each in source_of(call.host).owners.values()]
    return {"servers": servers, "total": len(servers)}


@routes.get("/api/mcp/servers/<name>", scope="mcp:read", answer=ServerShown)
async def get_server(call: Call, name: str) -> Answer:
    """Show one server."""
    return dict(_shown(source_of(call.host).owner(name)))


@routes.post("/api/mcp/servers/<name>/reconnect", scope="mcp:write", answer=ServerShown)
async def reconnect(call: Call, name: str) -> Answer:
    """Connect to a server anew, without waiting for its next turn."""
    owner = source_of(call.host).owner(name)
    owner.reconnect()
    return dict(_shown(owner))


@routes.post(
    "/api/mcp/servers/<name>/approve",
    scope="mcp:admin",
    body=Approve,
    answer=ServerShown,
)
async def approve(call: Call, name: str, body: Approve) -> Answer:
    """Agree to all that is pending of a server, as it was shown."""
    owner = source_of(call.host).owner(name)
    await owner.approve(body.digest, Context(call.principal))
    return dict(_shown(owner))


def source_of(host: Host) -> McpServers:
    """Find the servers.

    Raises:
        NotFound: This plugin has failed.
    """
    for _, source in host.registry.offered(ToolSource):
        if isinstance(source, McpServers):
            return source
    raise NotFound("plugin", "mcp")


def _shown(owner: Owner) -> ServerShown:
    transport, pending = owner.server.transport, owner.pending
    return {
        "name": owner.server.name,
        "transport": transport.type,
        "command": transport.command,
        "args": list(transport.args),
        "url": transport.url or "",
        "connected": owner.state == "connected",
        "tools": [
            {"name": pin.name, "description": described(owner.server.name, pin)}
            for _, pin in sorted(owner.offered.items())
        ],
        "state": owner.state,
        "reason": owner.reason,
        "protocol": owner.version,
        "pending": [
            {
                "tool": each.tool,
                "change": each.change,
                "flags": list(each.flags),
                "now": dict(each.definition),
                "before": None if each.before is None else dict(each.before),
            }
            for each in pending
        ],
        "digest": digest_of_all(pending) if pending else "",
    }
