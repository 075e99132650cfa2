"""Decide which plugins are enabled, before anything of them is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

from agenthost_toml.suggest import did_you_mean

from ..config_model import PluginSelection
from .discovery import Found


@dataclass(frozen=True, slots=True)
class PluginSet:
    """Patterns of the first-party plugins that are in and out."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()


SETS: Mapping[str, PluginSet] = MappingProxyType(
    {
        "default": PluginSet(),
        "minimal": PluginSet(
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
            )
        ),
        "api-only": PluginSet(
            exclude=("channel:*", "plugin:channels", "plugin:web_ui")
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The keys that are enabled, and names in the lists that name nothing."""

    enabled: frozenset[str]
    warnings: tuple[str, ...] = ()


def select(found: Iterable[Found], wanted: PluginSelection) -> Selection:
    """Apply ``[plugins]``: the set, then ``enable``, then ``disable``.

    A plugin of another distribution is off until ``enable`` names it.
    """
    plugins = tuple(found)
    enabled = frozenset(
        plugin.key
        for plugin in plugins
        if (_in_set(plugin, SETS[wanted.set]) or _matches(plugin, wanted.enable))
        and not _matches(plugin, wanted.disable)
    )
    warnings = [
        *_unknown("plugins.enable", wanted.enable, plugins),
        *_unknown("plugins.disable", wanted.disable, plugins),
    ]
    return Selection(enabled, tuple(warnings))


def _in_set(plugin: Found, chosen: PluginSet) -> bool:
    return (
        plugin.first_party
        and _matches(plugin, chosen.include)
        and not _matches(plugin, chosen.exclude)
    )


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
