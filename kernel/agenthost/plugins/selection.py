"""Decide which plugins are enabled, before anything of them is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from agenthost_toml.suggest import did_you_mean

from ..config_model import PluginSelection
from ..facts import FACTS
from .discovery import PluginState


def select_plugins(
    found: Sequence[PluginState], wanted: PluginSelection
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Apply ``[plugins]``: the set, then ``enable``, then ``disable``.

    A plugin of another distribution is off until ``enable`` names it.

    Returns:
        The keys that are enabled, and warnings about patterns that name nothing.
    """
    inside = FACTS["sets"][wanted.set]

    def enabled(plugin: PluginState) -> bool:
        out = _matches(plugin, inside["exclude"])
        in_set = _matches(plugin, inside["include"]) and not out
        wished = (plugin.first_party and in_set) or _matches(plugin, wanted.enable)
        return wished and not _matches(plugin, wanted.disable)

    names = [plugin.key for plugin in found] + [plugin.slug for plugin in found]
    warnings = tuple(
        f"plugins.{field}: no plugin is named {pattern!r}{did_you_mean(pattern, names)}"
        for field, patterns in (("enable", wanted.enable), ("disable", wanted.disable))
        for pattern in patterns
        if not any(_matches(plugin, (pattern,)) for plugin in found)
    )
    return frozenset(plugin.key for plugin in found if enabled(plugin)), warnings


def _matches(plugin: PluginState, patterns: Iterable[str]) -> bool:
    return any(
        fnmatchcase(plugin.key if ":" in pattern else plugin.slug, pattern)
        for pattern in patterns
    )
