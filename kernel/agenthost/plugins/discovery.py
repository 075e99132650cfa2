"""Find the plugins that are installed, without importing any."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from agenthost_values.value_class import value_class

from ..errors import PluginError
from ..facts import FACTS

GROUPS: Mapping[str, str] = FACTS["groups"]


class Entry(Protocol):
    """An entry point, as ``importlib_metadata`` has them."""

    @property
    def name(self) -> str:
        """The slug."""

    @property
    def group(self) -> str:
        """One of :data:`GROUPS`."""

    @property
    def dist(self) -> Any:
        """The distribution, with ``name`` and ``version``; None when unknown."""

    def load(self) -> Any:
        """Import what it names."""


class Status(StrEnum):
    """What became of a plugin."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    FAILED = "failed"


@value_class
class PluginState:
    """An installed plugin and what became of it; ``key`` is ``kind:slug``."""

    key: str
    distribution: str
    version: str
    entry: Entry
    status: Status = Status.DISABLED
    reason: str | None = None

    @property
    def slug(self) -> str:
        """The key without its kind."""
        return self.key.partition(":")[2]

    @property
    def first_party(self) -> bool:
        """Whether it came with agenthost itself."""
        return re.sub(r"[-_.]+", "-", self.distribution).lower() == "agenthost"


@value_class
class SystemState:
    """A security system as ``/api/security`` shows it.

    ``reason`` is why it is not active, or what it protects in vain.
    """

    name: str
    plugin: str
    active: bool
    reason: str | None = None


def find_plugins(entries: Iterable[Entry] | None = None) -> tuple[PluginState, ...]:
    """List the plugins of the six groups: first-party ones first, then by key.

    Args:
        entries: Entry points to use instead of the installed ones.

    Raises:
        PluginError: Two distributions offer the same key.
    """
    found: dict[str, PluginState] = {}
    facts: dict[Any, tuple[str, str]] = {}
    for entry in installed_entries() if entries is None else entries:
        if entry.group not in GROUPS:
            continue
        # Each look at a distribution reads its metadata again.
        if entry.dist not in facts:
            facts[entry.dist] = _facts_of(entry.dist)
        name, version = facts[entry.dist]
        key = f"{GROUPS[entry.group]}:{entry.name}"
        plugin = PluginState(key, name, version, entry)
        other = found.setdefault(plugin.key, plugin)
        if other is not plugin:
            raise PluginError(
                f"{plugin.key} is offered twice: by {_whose(other)} and by "
                f"{_whose(plugin)}; uninstall one of them"
            )
    return tuple(sorted(found.values(), key=lambda p: (not p.first_party, p.key)))


def installed_entries() -> Iterable[Entry]:
    """The entry points of the six groups in this environment."""
    from importlib_metadata import PathDistribution

    offered = (e for place in _offering() for e in PathDistribution(place).entry_points)
    return [entry for entry in offered if entry.group in GROUPS]


def _offering() -> Iterator[Path]:
    """Where the metadata of distributions is that may have plugins.

    ``importlib_metadata`` would parse what each of them offers, which takes longer than
    all the rest of finding plugins. As with it, the first of a name counts.
    """
    seen = set()
    for folder in sys.path:
        for name in _listed(folder):
            project = name.rpartition(".")[0].partition("-")[0]
            project = re.sub(r"[-_.]+", "_", project).lower()
            if name.endswith((".dist-info", ".egg-info")) and project not in seen:
                seen.add(project)
                place = Path(folder, name)
                with suppress(OSError):
                    if b"agenthost." in (place / "entry_points.txt").read_bytes():
                        yield place


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:
        return []


def _facts_of(dist: Any) -> tuple[str, str]:
    read = getattr(dist, "read_text", lambda _: None)
    # The head alone: to parse all of it imports what nothing else here needs.
    head = (read("METADATA") or read("PKG-INFO") or "").partition("\n\n")[0]
    facts = dict(re.findall(r"(?m)^(Name|Version): (.+)$", head))
    try:
        return facts.get("Name") or dist.name, facts.get("Version") or dist.version
    except (AttributeError, KeyError):
        return "an unknown distribution", "unknown"


def _whose(plugin: PluginState) -> str:
    return f"{plugin.distribution} {plugin.version}"
