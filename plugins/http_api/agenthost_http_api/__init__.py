"""The native REST, SSE and WebSocket surface of agenthost."""

from collections.abc import Iterable

from agenthost import RouteGroup, hookimpl


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer agents, their memory, the catalogue, usage and the daemon's own routes."""
    from . import (
        agents,
        catalogue,
        memory,
        messages,
        plugins,
        providers,
        sessions,
        socket,
        system,
        usage,
    )

    yield from (agents.routes, messages.routes, sessions.routes, memory.routes)
    yield from (catalogue.routes, providers.routes, usage.routes)
    yield from (system.routes, plugins.routes, socket.socket_routes())
