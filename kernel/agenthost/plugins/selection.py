"""Decide which plugins are enabled, before anything of them is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

from agenthost_toml.suggest import did_you_mean

from ..config_model import PluginSelection
from .discovery import PluginState

Patterns = tuple[str, ...]

SETS: Mapping[str, tuple[Patterns, Patterns]] = MappingProxyType(
    {
        "default": (("*",), ()),
        "minimal": (
            (
                "plugin:compaction",
                "plugin:egress",
                "plugin:events",
                "plugin:front",
                "plugin:http_api",
                "plugin:cli",
                "plugin:jobs",
                "plugin:records",
                "plugin:routing",
                "plugin:storage",
                "plugin:workers",
                "tool:*",
                "provider:offline",
                "security:*",
            ),
            (),
        ),
        "api-only": (("*",), ("channel:*", "plugin:channels", "plugin:web_ui")),
    }
)
"""Patterns of the first-party plugins that are in and out, by the set's name."""


def select(
    found: Sequence[PluginState], wanted: PluginSelection
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Apply ``[plugins]``: the set, then ``enable``, then ``disable``.

    A plugin of another distribution is off until ``enable`` names it.

    Returns:
        The keys that are enabled, and warnings about patterns that name nothing.
    """
    include, exclude = SETS[wanted.set]

    def enabled(plugin: PluginState) -> bool:
        in_set = _matches(plugin, include) and not _matches(plugin, exclude)
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
