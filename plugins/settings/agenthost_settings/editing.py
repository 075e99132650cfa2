"""Change one key in the text of ``config.toml``: its comments and the rest stay."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenthost import ConfigError
from agenthost_toml.environment import Keys
from agenthost_toml.source import SettingsError, read_source

FILE = "config.toml"
BY_HAND = "the file is written in a way that cannot be changed here; edit it by hand"


def change(home: Path, path: Sequence[str], value: Any, keys: Keys) -> str:
    """Give the text of the file with a value put at its place.

    Raises:
        ConfigError: The file cannot be read, is no TOML, or says the tables around the
            key in a way that cannot be followed.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        source = read_source(home / FILE)
        said = source.parse()
    except SettingsError as error:
        raise ConfigError(str(error)) from error
    path = _as_written(path, said, keys)
    *tables, last = path
    try:
        document = tomlkit.parse(source.text)
        inner: Any = document
        for table in tables:
            if table not in inner:
                inner[table] = tomlkit.table()
            inner = inner[table]
        inner[last] = value
        text = document.as_string()
        if tomllib.loads(text) == _with(said, path, value):
            return text
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        raise ConfigError(BY_HAND) from error
    raise ConfigError(BY_HAND)


def _as_written(
    path: Sequence[str], said: Mapping[str, Any], keys: Keys
) -> Sequence[str]:
    """Follow the name by which the file says the key already."""
    for alias, name in keys.aliases.items():
        if [name] == list(path) and alias in said:
            return [alias]
    return path


def _with(table: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    return {**table, first: _with(table.get(first, {}), rest, value) if rest else value}
