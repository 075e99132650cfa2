"""Decide which plugins are enabled, before anything of them is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from agenthost_toml.suggest import did_you_mean

from ..config_model import PluginSelection
from .discovery import Found

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
    found: Iterable[Found], wanted: PluginSelection
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Apply ``[plugins]``: the set, then ``enable``, then ``disable``.

    A plugin of another distribution is off until ``enable`` names it.

    Returns:
        The keys that are enabled, and warnings about patterns that name nothing.
    """
    plugins = tuple(found)
    include, exclude = SETS[wanted.set]

    def in_set(plugin: Found) -> bool:
        told = _matches(plugin, include) and not _matches(plugin, exclude)
        return plugin.first_party and told

    enabled = frozenset(
        plugin.key
        for plugin in plugins
        if (in_set(plugin) or _matches(plugin, wanted.enable))
        and not _matches(plugin, wanted.disable)
    )
    warnings = [
        *_unknown("plugins.enable", wanted.enable, plugins),
        *_unknown("plugins.disable", wanted.disable, plugins),
    ]
    return enabled, tuple(warnings)


def _matches(plugin: Found, patterns: Iterable[str]) -> bool:
    return any(
        fnmatchcase(plugin.key if ":" in pattern else plugin.slug, pattern)
        for pattern in patterns
    )


def _unknown(
    field: str, patterns: Iterable[str], plugins: tuple[Found, ...]
) -> list[str]:
    names = [p.key for p in plugins] + [p.slug for p in plugins]
    return [
        f"{field}: no plugin is named {pattern!r}{did_you_mean(pattern, names)}"
        for pattern in patterns
        if not any(_matches(plugin, (pattern,)) for plugin in plugins)
    ]
