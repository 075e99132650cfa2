"""The REST surface: the servers, what waits for approval, and the yes to it."""

from __future__ import annotations

from agenthost import Answer, Call, Conflict, Context, Reply, RouteGroup

from .callback import tell
from .events import McpServerLoggedOut
from .owner import Owner
from .pins import digest_of_all
from .settings import McpServer, Transport
from .shapes import (
    AddServer,
    Approve,
    LoginStarted,
    ServerGone,
    ServerList,
    ServerShown,
)
from .source import described, source_of

routes = RouteGroup("mcp_servers")


@routes.get("/api/mcp/servers", scope="mcp:read", answer=ServerList)
async def list_servers(call: Call) -> Answer:
    """List the MCP servers, their tools and what waits."""
    servers = [_shown(each) for each in source_of(call.host).owners.values()]
    return {"servers": servers, "total": len(servers)}


@routes.post(
    "/api/mcp/servers",
    scope="mcp:admin",
    cost=10,
    body=AddServer,
    answer=ServerShown,
    status=201,
)
async def add_server(call: Call, body: AddServer) -> Answer:
    """Add a server behind an address; it is connected to at once, and kept."""
    reached = Transport(type=body.type, url=body.url)
    more = body.model_dump(exclude={"type", "url"})
    server = McpServer(transport=reached, **more)
    owner = await source_of(call.host).add(server, call.context)
    return Reply(_shown(owner), 201)


@routes.delete("/api/mcp/servers/<name>", scope="mcp:admin", answer=ServerGone)
async def remove_server(call: Call, name: str) -> Answer:
    """Remove a server that was added, with its tools and its login."""
    source = source_of(call.host)
    await _forget_login(call, source.owner(name))
    await source.remove(name, call.context)
    return {"status": "removed", "name": name}


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


@routes.post(
    "/api/mcp/servers/<name>/login", scope="mcp:admin", cost=10, answer=LoginStarted
)
async def log_in(call: Call, name: str) -> Answer:
    """Begin a login at a server, and say what a person opens in a browser."""
    source = source_of(call.host)
    door = source.owner(name).door
    if door is None:
        raise Conflict(
            f"there is no login at {name}: only a server of type http has one, without "
            "Authorization in its headers"
        )
    started = await source.logins_of(call.host).start(door, call.context)
    return {
        "url": started.url,
        "issuer": started.issuer,
        "redirect_uri": started.redirect,
        "scope": started.scope,
    }


@routes.delete("/api/mcp/servers/<name>/login", scope="mcp:admin", answer=ServerShown)
async def log_out(call: Call, name: str) -> Answer:
    """Forget the tokens of a server, and who the daemon is to its issuer."""
    owner = source_of(call.host).owner(name)
    if await _forget_login(call, owner):
        owner.reconnect()
    return dict(_shown(owner))


async def _forget_login(call: Call, owner: Owner) -> bool:
    if owner.door is None or (grant := owner.door.grant) is None:
        return False
    await tell(call.host, McpServerLoggedOut, owner.server.name, grant, call.context)
    await owner.door.keep(None)
    return True


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
        "added": owner.added,
    }
