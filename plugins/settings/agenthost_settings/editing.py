"""Change one key of ``config.toml``: its comments, its mode and the rest stay."""

from __future__ import annotations

import fcntl
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agenthost import ConfigError
from agenthost_toml.environment import Keys
from agenthost_toml.source import SettingsError, read_source

FILE = "config.toml"
BY_HAND = "the file is written in a way that cannot be changed here; edit it by hand"


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Keep other changes of this home's file waiting."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


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


def replace(home: Path, text: str) -> None:
    """Put a text in the place of the file, in one step; its mode stays.

    Raises:
        OSError: The disk refused; the file is as it was.
    """
    # Where the file is a link, what it leads to is replaced.
    file = (home / FILE).resolve()
    old = file.read_bytes() if file.exists() else b""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    if b"\r\n" in old:
        text = text.replace("\n", "\r\n")
    new = file.with_name(f".{FILE}.new")
    with suppress(FileNotFoundError):
        new.unlink()
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            os.fchmod(descriptor, mode)
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
