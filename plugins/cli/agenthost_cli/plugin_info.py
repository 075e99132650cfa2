"""What is known of one plugin, for people to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .client import Client
from .extensions import load_plugins
from .running import NoDaemon
from .switching import key_of


def plugin_info(home: Path, name: str) -> dict[str, Any]:
    """Ask the running daemon about a plugin, else see how it would load.

    Args:
        home: The home.
        name: The plugin's key, or its slug where only one has it.

    Returns:
        Its row of ``/api/plugins`` and its schemas; without a daemon the state alone.

    Raises:
        CommandError: Nobody has the name, or several have.
    """
    try:
        client = Client(home)
    except NoDaemon:
        return _loadable(home, name)
    rows = {row["key"]: row for row in client.get("/api/plugins")["plugins"]}
    key = key_of(name, list(rows))
    return {**rows[key], **client.get(f"/api/plugins/{key}/schema")}


def _loadable(home: Path, name: str) -> dict[str, Any]:
    states = {state.key: state for state in load_plugins(home).states()}
    state = states[key_of(name, list(states))]
    shown = ("key", "distribution", "version", "reason", "first_party")
    return {**{key: getattr(state, key) for key in shown}, "status": state.status.value}


def lines_of(info: Mapping[str, Any]) -> Iterator[str]:
    """Tell it as lines of text."""
    reason = f": {info['reason']}" if info["reason"] else ""
    origin = "agenthost's own" if info["first_party"] else "another's"
    yield f"{info['key']} is {info['status']}{reason}"
    yield f"from {info['distribution']} {info['version']}, {origin}"
    for kind, names in info.get("offers", {}).items():
        yield f"{kind}: {', '.join(names)}" if names else kind
    for section in info.get("config", ()):
        yield f"config [{section['name']}]"
        yield from _keys(section["schema"])
    for table in info.get("manifest", ()):
        yield f"manifest [{table['name']}]" if table["name"] else "manifest"
        yield from _keys(table["schema"])


def _keys(schema: Mapping[str, Any]) -> Iterator[str]:
    for key, shape in schema.get("properties", {}).items():
        kinds = (shape, *shape.get("anyOf", ()))
        secret = " (secret)" if any(kind.get("writeOnly") for kind in kinds) else ""
        said = None if secret else shape.get("default")
        default = "" if said is None else f" [{said}]"
        yield f"  {key}{secret}{default}  {shape.get('description', '')}".rstrip()
