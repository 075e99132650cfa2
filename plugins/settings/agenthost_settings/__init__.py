"""What the configuration says to plugins, checked before anything is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agenthost import (
    Backend,
    CommandSpec,
    ConfigSection,
    Plugins,
    Settings,
    SettingsBackend,
    hookimpl,
)

if TYPE_CHECKING:
    from agenthost_toml.settings import Settings as Said


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
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost config``."""
    from .commands import config

    yield CommandSpec(config)
