"""Read the configuration: ``config.toml``, then ``AGENTHOST_*`` over it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agenthost_toml.environment import Keys
from agenthost_toml.problems import shape_of
from agenthost_toml.settings import Settings, read_settings
from agenthost_toml.source import SettingsError, Source, read_source
from agenthost_values.value_class import value_class

from .config_model import Config
from .errors import ConfigError

FILE = "config.toml"
KEYS = Keys(
    shape_of(Config) or {},
    prefix="AGENTHOST_",
    aliases={"api_listen": "listen_addr"},
    reserved=frozenset({"AGENTHOST_HOME", "AGENTHOST_VAULT_KEY"}),
)


@value_class
class LoadedConfig:
    """The kernel's own keys, and all that is said: what else there is, plugins tell."""

    config: Config
    said: Settings


def load_config(
    home: Path, environ: Mapping[str, str], text: str | None = None
) -> LoadedConfig:
    """Read ``<home>/config.toml`` and the environment over it, as far as the kernel's.

    Args:
        home: The folder of the file.
        environ: The environment.
        text: What is read as if it stood in the file.

    Raises:
        ConfigError: Naming line, key and remedy; also when the API would be open to
            the network by mistake (see :func:`check_exposure`).
    """
    try:
        source = read_source(home / FILE) if text is None else Source(FILE, text)
        settings = read_settings(KEYS, source, environ)
        folder = settings.table.get("data_dir", "data")
        config = settings.checked(Config, data_dir=_data_dir(home, folder))
    except SettingsError as error:
        raise ConfigError(str(error)) from error
    check_exposure(config, settings.where(("listen_addr",)))
    return LoadedConfig(config, settings)


def check_exposure(config: Config, place: str | None = None) -> None:
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
    where = f"{place}: listen_addr" if place else "listen_addr"
    raise ConfigError(
        f"{where}: {config.listen_addr} can be reached from the network, and without "
        "an api_key anyone there could run agents; set api_key (AGENTHOST_API_KEY), "
        "listen on 127.0.0.1, or say allow_unauthenticated_network = true"
    )


def _data_dir(home: Path, said: object) -> object:
    if not isinstance(said, str):
        return said
    path = Path(said or "data")
    if path.parts[:1] == ("~",):
        path = Path.home().joinpath(*path.parts[1:])
    return home / path
