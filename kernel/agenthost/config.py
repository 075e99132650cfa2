"""Read the configuration: ``config.toml``, then ``AGENTHOST_*`` over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agenthost_toml.environment import Keys
from agenthost_toml.settings import read_settings
from agenthost_toml.source import SettingsError

from .config_model import Config
from .errors import ConfigError

FILE = "config.toml"
UNSERVED = ("channels", "mcp_servers", "openai", "rate_limit")
"""Sections that no plugin reads yet; a plugin that does takes its own out."""
SECRET = ("api_key", "channels", "mcp_servers", "storage")
KEYS = Keys(
    Config,
    prefix="AGENTHOST_",
    aliases={"api_listen": "listen_addr"},
    reserved=frozenset({"AGENTHOST_HOME"}),
)


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The configuration, and what in it was not understood."""

    config: Config
    warnings: tuple[str, ...] = ()


def load_config(home: Path, environ: Mapping[str, str]) -> LoadedConfig:
    """Read ``<home>/config.toml`` and the environment over it.

    An unknown key is a warning; whatever else is wrong stops the start.

    Raises:
        ConfigError: Naming line, key and remedy; also when the API would be open to
            the network by mistake (see :func:`check_exposure`).
    """
    try:
        settings = read_settings(KEYS, home / FILE, environ)
        folder = settings.table.get("data_dir", "data")
        config = settings.checked(data_dir=_data_dir(home, folder))
    except SettingsError as error:
        raise ConfigError(str(error)) from error
    try:
        check_exposure(config)
    except ConfigError as error:
        place = settings.where("listen_addr")
        raise ConfigError(
            f"{place}: {error.message}" if place else error.message
        ) from None
    idle, exposed = settings.idle(UNSERVED), settings.exposed(SECRET)
    return LoadedConfig(config, (*settings.warnings, *idle, *exposed))


def check_exposure(config: Config) -> None:
    """Refuse an API that is open to the network because nobody thought of it.

    Raises:
        ConfigError: The address is not loopback, there is no key, and nobody said
            ``allow_unauthenticated_network = true``.
    """
    if (
        config.listens_on_loopback
        or config.api_key
        or config.allow_unauthenticated_network
    ):
        return
    raise ConfigError(
        f"listen_addr: {config.listen_addr} can be reached from the network, and "
        "without an api_key anyone there could run agents; set api_key "
        "(AGENTHOST_API_KEY), listen on 127.0.0.1, or say "
        "allow_unauthenticated_network = true"
    )


def _data_dir(home: Path, said: object) -> object:
    if not isinstance(said, str):
        return said
    path = Path(said or "data")
    if path.parts[:1] == ("~",):
        path = Path.home().joinpath(*path.parts[1:])
    return home / path
