"""The native REST, SSE and WebSocket surface of agenthost."""

from collections.abc import Iterable

from agenthost import ChatCommand, ConfigSection, RouteGroup, ServiceSpec, hookimpl


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer agents, their memory, the catalogue, usage and the daemon's own routes."""
    from . import (
        agents,
        catalogue,
        commands,
        files,
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
    yield from (commands.routes, files.routes)
    yield from (catalogue.routes, providers.routes, usage.routes)
    yield from (system.routes, plugins.routes, socket.socket_routes())


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read how much people may hand to an agent."""
    from .file_settings import UploadsSection

    yield ConfigSection("uploads", UploadsSection)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer the watch over the daemon's health."""
    from .health import HealthWatch

    watch = HealthWatch()
    yield ServiceSpec("health watch", watch.start, watch.stop)


@hookimpl
def register_chat_command() -> Iterable[ChatCommand]:
    """Offer the commands that every chat has."""
    from .commands import built_in

    yield from built_in()
