"""What a home is made of, and how its copy names it."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agenthost import AgentHostError, ConfigError, load_config

FORMAT = "agenthost-backup"
VERSION = 1
CONTENTS = "contents.json"
DATABASE = "data/agenthost.db"
KEYS = frozenset({"vault.key", "audit.key"})
PASSING = ("daemon.", "incidents.jsonl", "last_stack.txt", "chat_history")
"""What a daemon writes about itself as it runs: it means nothing elsewhere."""


class Home(NamedTuple):
    """Where the parts of a home are."""

    folder: Path
    data: Path
    database: Path


def home_at(folder: Path) -> Home:
    """Find the parts of a home by its configuration.

    Raises:
        ConfigError: It has none that can be read, or its database is no file here.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder.name} is no home; set AGENTHOST_HOME, or --home")
    config = load_config(folder, os.environ).config
    data = config.data_dir.absolute()
    url = config.storage.url.reveal() if config.storage.url else ""
    if url and not url.startswith("sqlite:"):
        raise ConfigError(
            "storage.url: the database is on a server; copy it with the server's own "
            "tools, such as pg_dump"
        )
    path = Path(url.partition("://")[2].removeprefix("/")) if url else None
    return Home(folder.absolute(), data, path or data / "agenthost.db")


def members(home: Home, *, keys: bool) -> Iterator[tuple[str, Path]]:
    """Name the files of a home, those right beside its database first.

    What stands beside the database says how far its audit trail goes: it has to be
    copied before the database, and all that rows refer to behind it.
    """
    top = [each for each in _sorted(home.data) if _is_file(each)]
    for path in top:
        if not path.name.startswith(home.database.name):
            yield f"data/{path.name}", path
    for path in _sorted(home.folder):
        if path.name.startswith(PASSING) or path.absolute() == home.data:
            continue
        if keys or path.name not in KEYS:
            yield from _below(path, f"home/{path.name}", home)
    for path in _sorted(home.data):
        if path not in top:
            yield from _below(path, f"data/{path.name}", home)


def _below(path: Path, name: str, home: Home) -> Iterator[tuple[str, Path]]:
    """Name the files at and below a path; links and what else is no file stay out."""
    if path == home.data or path.name.startswith(home.database.name):
        return
    mode = _mode(path)
    if stat.S_ISREG(mode):
        yield name, path
    elif stat.S_ISDIR(mode):
        for each in _sorted(path):
            yield from _below(each, f"{name}/{each.name}", home)


def _sorted(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        # An agent may remove a folder as it is read.
        return []


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def data_of(config: str, home: Path) -> Path:
    """Tell where a restored configuration keeps its data.

    Raises:
        ConfigError: It cannot be read, or says that the database is elsewhere.
    """
    try:
        said = tomllib.loads(config)
        folder = Path(str(said.get("data_dir", "data"))).expanduser()
        url = said.get("storage", {}).get("url")
    except (ValueError, AttributeError, RuntimeError) as error:
        raise ConfigError("config.toml of the backup cannot be read") from error
    if url:
        raise ConfigError(
            "storage.url of the backup's config.toml names a database by its place; "
            "give --data to keep it below the new home instead"
        )
    return home / folder


def told(error: Exception) -> str:
    """Say what failed, without what is of no use to people."""
    if isinstance(error, AgentHostError):
        return error.message
    if isinstance(error, OSError):
        return error.strerror or "the disk refused"
    return str(error)
