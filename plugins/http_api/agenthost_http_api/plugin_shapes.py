"""The shapes of what is told of plugins."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from .system_shapes import PluginRow


class PluginDetail(PluginRow):
    """A plugin, and what it offers.

    ``offers`` has the names by kind, such as ``tool`` or ``route``; listeners,
    observers and commands have none. What is disabled or has failed offers nothing.
    """

    first_party: bool
    offers: dict[str, list[str]]
    manifest_tables: list[str]


class PluginList(TypedDict):
    """``GET /api/plugins``: every installed plugin, by key."""

    plugins: list[PluginDetail]
    total: int


class Described(TypedDict):
    """A table and the JSON Schema of its keys; the manifest's own top has no name."""

    name: str
    schema: dict[str, Any]


class PluginSchema(TypedDict):
    """``GET /api/plugins/{key}/schema``: what the plugin can be told, never values."""

    key: str
    manifest: list[Described]
