"""Remove what a plugin has left that is gone: its tables, its section of the file."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agenthost import (
    AgentHostError,
    Config,
    Plugins,
    StoreBackend,
    find_plugins,
    load_config,
    lock_home,
)

from .config_file import FILE, alone, edited, read, replace
from .errors import CommandError

if TYPE_CHECKING:
    from agenthost import PluginState
    from tomlkit import TOMLDocument

T = TypeVar("T")
SLUG = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Left:
    """What a plugin has left: rows by table, and what is said of it in the file."""

    tables: Mapping[str, int]
    settings: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Tell it as lines of text."""
        for name, rows in sorted(self.tables.items()):
            yield f"table {name}, {rows} row{'' if rows == 1 else 's'}"
        for name in self.settings:
            yield f"{name} in {FILE}"


def purge(home: Path, name: str, *, drop: bool) -> Left:
    """Find what a plugin that is disabled or gone has left, and remove it.

    Args:
        home: Whose database and configuration are looked at; no daemon runs on it.
        name: The plugin's key, or its slug.
        drop: Whether it is removed, or only told.

    Raises:
        CommandError: The plugin is enabled, or agenthost's own; a daemon runs; what
            belongs to whom cannot be told.
    """
    with _held(home), alone(home):
        text = read(home)
        known = _Known.of(home)
        slug = known.slug_of(name)
        section = slug not in known.sections
        new = edited(text, partial(_take_out, {name, slug}, slug if section else ""))
        left = Left(known.tables(slug), _settings(text, new, slug, section=section))
        if drop:
            known.drop(slug)
            if left.settings:
                replace(home, new)
    return left


@contextmanager
def _held(home: Path) -> Iterator[None]:
    """Keep a daemon of this home from starting meanwhile."""
    if not home.is_dir():
        raise CommandError(f"{home} is no home of a daemon; set AGENTHOST_HOME")
    try:
        lock = lock_home(home)
    except AgentHostError as error:
        raise CommandError(error.message) from error
    except OSError as error:
        raise CommandError(f"{home} cannot be used: {error.strerror}") from error
    with lock:
        yield


@dataclass(frozen=True, slots=True)
class _Known:
    """Who is here: the plugins, whose names stay, and the store."""

    installed: Mapping[str, PluginState]
    enabled: frozenset[str]
    names: frozenset[str]
    sections: frozenset[str]
    url: str
    backend: StoreBackend

    @classmethod
    def of(cls, home: Path) -> _Known:
        """Load what is enabled, and all of our own: their tables are nobody's else."""
        try:
            config = load_config(home, os.environ).config
            ours = load_config(home, {}, "").config
            installed = {each.key: each for each in find_plugins()}
            loaded = [_loaded(each) for each in (config, ours)]
        except AgentHostError as error:
            raise CommandError(error.message) from error
        schemas = [spec for plugins in loaded for spec in _all(plugins, "schema")]
        tables = {name for spec in schemas for name in spec.metadata.tables}
        sections = {each.name for plugins in loaded for each in _all(plugins, "config")}
        secret = config.storage.url
        path = (config.data_dir / "agenthost.db").absolute()
        url = secret.reveal() if secret else f"sqlite:///{path}"
        return cls(
            installed,
            frozenset(loaded[0].in_order()),
            frozenset(tables | {spec.name for spec in schemas}),
            frozenset({name.partition(".")[0] for name in sections} | _kernel_keys()),
            url,
            _store(loaded[0], url),
        )

    def slug_of(self, name: str) -> str:
        """Give the slug of a plugin whose data may go."""
        slug = name.rpartition(":")[2]
        if not SLUG.fullmatch(slug):
            raise CommandError(f"{name!r} is no plugin's name: plugin:acme, or acme")
        for key, state in self.installed.items():
            if slug != key.partition(":")[2]:
                continue
            if state.first_party:
                raise CommandError(f"{key} is agenthost's own; its data stays")
            if key in self.enabled:
                raise CommandError(
                    f"{key} is enabled; first: agenthost plugins disable {key}"
                )
        return slug

    def tables(self, slug: str) -> Mapping[str, int]:
        """Count the rows of the tables a plugin of this slug has left."""
        return self._asked(lambda: self.backend.tables(self.url, self._owned(slug)))

    def drop(self, slug: str) -> None:
        """Drop the tables a plugin of this slug has left."""
        self._asked(lambda: self.backend.drop(self.url, self._owned(slug)))

    def _owned(self, slug: str) -> Callable[[str], bool]:
        """Tell names of a plugin: tables are named after it, the longest slug wins."""
        slugs = {key.partition(":")[2] for key in self.installed} | {slug}

        def owned(name: str) -> bool:
            fits = [s for s in slugs if name == s or name.startswith(f"{s}_")]
            return name not in self.names and max(fits, key=len, default="") == slug

        return owned

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except AgentHostError as error:
            raise CommandError(error.message) from error


def _loaded(config: Config) -> Plugins:
    plugins = Plugins()
    asyncio.run(plugins.load(config))
    failed = [state for state in plugins.states() if state.status == "failed"]
    if failed:
        # Whose tables and sections are its own, only it could say.
        raise CommandError(
            f"{failed[0].key} cannot be loaded ({failed[0].reason}); mend or disable it"
        )
    return plugins


def _all(plugins: Plugins, what: str) -> list[Any]:
    return [spec for _, spec in asyncio.run(plugins.collect(f"register_{what}"))]


def _store(plugins: Plugins, url: str) -> StoreBackend:
    scheme = url.partition(":")[0]
    for backend in _all(plugins, "backend"):
        if isinstance(backend, StoreBackend) and backend.name == scheme:
            return backend
    raise CommandError(f"storage.url: no plugin that is on serves {scheme!r}")


def _kernel_keys() -> set[str]:
    return set(Config.model_fields)


def _settings(text: str, new: str, slug: str, *, section: bool) -> tuple[str, ...]:
    import tomlkit

    found = []
    if section and slug in tomlkit.parse(text):
        found.append(f"[{slug}]")
    before, after = (tomlkit.parse(each).get("plugins", {}) for each in (text, new))
    changed = (n for n in ("enable", "disable") if before.get(n) != after.get(n))
    return (*found, *(f"its entry in plugins.{name}" for name in changed))


def _take_out(names: set[str], section: str, document: TOMLDocument) -> None:
    document.pop(section, None)
    for name in ("enable", "disable"):
        entries: Any = document.get("plugins", {}).get(name, [])
        for place in reversed(range(len(entries))):
            if entries[place] in names:
                del entries[place]
