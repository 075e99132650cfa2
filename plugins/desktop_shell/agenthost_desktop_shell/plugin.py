"""Desktop capability files: parse, validate, resolve, decide."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from agenthost import (
    CommandSpec,
    ConfigSection,
    LateRoutes,
    RouteGroup,
    SchemaSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData

    from .served import ServedFolders


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read how the served folder is read, and whether decisions are recorded."""
    from .config import DesktopSection

    yield ConfigSection("desktop_shell", DesktopSection)


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the table of recorded decisions."""

    def metadata() -> MetaData:
        from .record_rows import metadata

        return metadata

    return SchemaSpec("desktop_shell", metadata)


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer validation, resolution and decisions over HTTP, and the IPC bridge."""

    @cache
    def folders() -> ServedFolders:
        from .served import ServedFolders

        return ServedFolders()

    def capabilities() -> RouteGroup:
        from .routes import route_group

        return route_group(folders())

    def bridge() -> RouteGroup:
        from .bridge import bridge_group

        return bridge_group(folders())

    capability_paths = ("/api/desktop/capabilities",)
    bridge_paths = (
        "/api/desktop/decisions",
        "/api/desktop/ipc",
        "/api/desktop/tokens",
    )
    yield LateRoutes("desktop_shell.capabilities", capability_paths, capabilities)
    yield LateRoutes("desktop_shell.ipc", bridge_paths, bridge)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost capability``."""
    from .commands import capability

    yield CommandSpec(capability)
