"""Where a browser comes back to from a login, without a key: its ``state`` decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    Context,
    Host,
    Reply,
    RouteGroup,
    ToolSource,
    telling,
)

from .source import McpServers, source_of

if TYPE_CHECKING:
    from .events import McpLoginEvent
    from .oauth.grant import Grant

PATH = "/oauth/callback"
HEADERS = {
    "Content-Type": "text/plain; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


def is_awaited(host: Host, path: str) -> bool:
    """Tell whether a browser may come to a path: while a login is under way."""
    if path != PATH:
        return False
    for _, source in host.registry.offered(ToolSource):
        if isinstance(source, McpServers):
            return source.logins is not None and source.logins.any
    return False


def group() -> RouteGroup:
    """The one route."""
    routes = RouteGroup("mcp.login")

    @routes.get(PATH, scope="mcp:admin", cost=10, public=is_awaited, media="text/plain")
    async def finish_login(call: Call) -> Answer:
        """End a login that was begun here, with what the issuer sends back."""
        return await finished(call)

    return routes


async def finished(call: Call) -> Reply:
    """Keep the tokens, tell of it, and connect with them."""
    from .events import McpServerLoggedIn

    host, source = call.host, source_of(call.host)
    try:
        login, grant = await source.logins_of(host).finish(call.query)
        name = login.door.server.name
        # The vault is no table: that it changes is on disk before it does.
        await tell(host, McpServerLoggedIn, name, grant, login.by)
        await login.door.keep(grant)
    except AgentHostError as error:
        said = f"The login has failed: {error.message}\n"
        return Reply(said.encode(), error.status, HEADERS)
    source.owner(name).reconnect()
    said = f"agenthost is logged in at {name}. This page can be closed.\n"
    return Reply(said.encode(), 200, HEADERS)


async def tell(
    host: Host, kind: type[McpLoginEvent], name: str, grant: Grant, by: Context
) -> None:
    """Tell of a login, with its row where one is kept.

    Raises:
        AgentHostError: Somebody refuses that it happens.
    """
    facts = name, host.clock.time(), grant.issuer, grant.scope
    with telling(host.events, kind, *facts, **by.caused) as keep:
        if keep is not None:
            await host.store.write(keep)
