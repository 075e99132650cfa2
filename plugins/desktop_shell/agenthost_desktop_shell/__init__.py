"""Desktop capability files: parse, validate, resolve, decide."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import CommandSpec, RouteGroup, hookimpl


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer validation, resolution and decisions over HTTP, and the IPC bridge."""
    from .bridge import bridge_group
    from .routes import route_group
    from .served import ServedFolders

    folders = ServedFolders()
    yield route_group(folders)
    yield bridge_group(folders)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost capability``."""
    from .commands import capability

    yield CommandSpec(capability)
