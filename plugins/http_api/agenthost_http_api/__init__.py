"""The native REST, SSE and WebSocket surface of agenthost."""

from collections.abc import Iterable

from agenthost import RouteGroup, hookimpl


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer agents, messages, sessions, memory and the daemon's own routes."""
    from . import agents, memory, messages, sessions, socket, system

    for module in (agents, messages, sessions, memory, system, socket):
        yield module.routes
