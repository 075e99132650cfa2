"""The native REST, SSE and WebSocket surface of agenthost."""

from collections.abc import Iterable
from functools import partial
from importlib import import_module

from agenthost import (
    ChatCommand,
    CommandSpec,
    ConfigSection,
    LateRoutes,
    Mountable,
    RouteGroup,
    ServiceSpec,
    hookimpl,
)


@hookimpl
def register_routes() -> Iterable[Mountable]:
    """Offer agents, their memory, the catalogue, usage and the daemon's own routes."""
    from . import agents, commands, files, keeping, messages, sessions, socket, system

    yield from (agents.routes, messages.routes, sessions.routes, keeping.routes)
    yield from (commands.routes, files.routes)
    yield from (system.routes, socket.socket_routes())
    for name, path, module in (
        ("memory", "/api/memory", ".memory"),
        ("catalogue", "/api/models", ".catalogue"),
        ("providers", "/api/providers", ".providers"),
        ("usage", "/api/usage", ".usage"),
        ("http_api.plugins", "/api/plugins", ".plugins"),
    ):
        yield LateRoutes(name, (path,), partial(_routes, module))
    yield LateRoutes("security", ("/api/security",), _security)


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


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost agent``, ``session``, ``memory``, ``providers``, ``usage``."""
    from .terminal import commands

    yield from map(CommandSpec, commands())


def _routes(module: str) -> RouteGroup:
    routes: RouteGroup = import_module(module, __package__).routes
    return routes


def _security() -> RouteGroup:
    from .security import security_routes

    return security_routes()
