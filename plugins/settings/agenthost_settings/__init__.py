"""What the configuration says to plugins, checked before anything is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agenthost import (
    Backend,
    CommandSpec,
    ConfigSection,
    LateRoutes,
    Mountable,
    Plugins,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    Settings,
    SettingsBackend,
    hookimpl,
)

if TYPE_CHECKING:
    from agenthost_toml.settings import Settings as Said
    from sqlalchemy import MetaData


async def open_settings(
    said: Said, plugins: Plugins, sections: Sequence[tuple[str, ConfigSection]]
) -> Settings:
    """Check all that file and environment say.

    Raises:
        ConfigError: A value is wrong; one line for each, naming place and remedy.
    """
    from .checking import check

    return await check(said, plugins, sections)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer ``config.toml`` and the environment."""
    yield SettingsBackend("toml", open_settings)


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the table of what was said at the last start."""

    def metadata() -> MetaData:
        from .tables import metadata

        return metadata

    return SchemaSpec("configurations", metadata)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what tells that the configuration is another than at the last start."""
    from .following import Following

    following = Following()
    yield ServiceSpec("configuration", following.start, following.stop)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost config`` and ``agenthost reload``."""
    from .commands import config, reload

    yield CommandSpec(config)
    yield CommandSpec(reload)


@hookimpl
def register_routes() -> Iterable[Mountable]:
    """Offer the route that has the file read anew."""
    yield LateRoutes("settings", ("/api/config/reload",), _routes)


def _routes() -> RouteGroup:
    from .reloading import routes

    return routes
