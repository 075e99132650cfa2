"""Switch a plugin on and off in ``config.toml``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agenthost import (
    AgentHostError,
    did_you_mean,
    find_plugins,
    load_config,
    select_plugins,
)

from .config_file import FILE, alone, edited, read, replace
from .errors import CommandError
from .extensions import load_plugins

if TYPE_CHECKING:
    from agenthost import PluginState
    from tomlkit import TOMLDocument


def switch(home: Path, name: str, *, on: bool) -> str:
    """Write into ``[plugins]`` that a plugin is on or off; a start takes it up.

    Args:
        home: Whose configuration is changed.
        name: The plugin's key, or its slug where only one has it.
        on: Whether it is to run.

    Returns:
        What was done.

    Raises:
        CommandError: Nobody has the name, nothing would start without the plugin, or
            the configuration would still say otherwise. The file is as it was.
    """
    found = _installed()
    key = key_of(name, [plugin.key for plugin in found])
    said = "enabled" if on else "disabled"
    with alone(home):
        text = read(home)
        if _runs(found, key, text) is on:
            return f"{key} is {said} already"
        if not on:
            _refuse_needed(home, key)
        new = _rewritten(found, key, text, on=on)
        if _runs(found, key, new) is not on:
            raise CommandError(_still(key, said, on=on))
        replace(home, new)
    return f"{key} is {said} in {FILE}; restart the daemon to apply"


def key_of(name: str, keys: Sequence[str]) -> str:
    """Find a plugin by its key or its slug.

    Raises:
        CommandError: Nobody has the name, or several have.
    """
    if name in keys:
        return name
    named = [key for key in keys if key.partition(":")[2] == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise CommandError(f"{name!r} may be {' or '.join(named)}; name one of them")
    slugs = [key.partition(":")[2] for key in keys]
    hint = did_you_mean(name, keys if ":" in name else slugs)
    raise CommandError(
        f"no plugin is named {name!r}{hint}; see: agenthost plugins list"
    )


def _installed() -> Sequence[PluginState]:
    try:
        return find_plugins()
    except AgentHostError as error:
        raise CommandError(error.message) from error


def _runs(found: Sequence[PluginState], key: str, text: str) -> bool:
    """Tell whether a start on this text, in this environment, enables the plugin."""
    with TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_bytes(text.encode())
        try:
            config = load_config(Path(folder), os.environ).config
        except AgentHostError as error:
            raise CommandError(f"{error.message}; correct it first") from error
    return key in select_plugins(found, config.plugins)[0]


def _refuse_needed(home: Path, key: str) -> None:
    offered = asyncio.run(load_plugins(home).collect("register_backend"))
    own = {backend.port for owner, backend in offered if owner == key}
    if alone_in := own - {backend.port for owner, backend in offered if owner != key}:
        raise CommandError(
            f"{key} cannot be disabled: no other plugin that is on serves "
            f"{' and '.join(sorted(alone_in))}, and without it nothing starts"
        )


def _rewritten(found: Sequence[PluginState], key: str, text: str, *, on: bool) -> str:
    """Take the plugin out of one list; put it into the other where that is needed."""
    slug = key.partition(":")[2]
    unique = [plugin.slug for plugin in found].count(slug) == 1
    names = {key, slug} if unique else {key}
    lists = ("disable", "enable") if on else ("enable", "disable")
    new = edited(text, partial(_take_out, lists[0], names))
    if _runs(found, key, new) is not on:
        new = edited(new, partial(_put_in, lists[1], key))
    return new


def _take_out(name: str, names: Collection[str], document: TOMLDocument) -> None:
    entries: Any = document.get("plugins", {}).get(name, [])
    for place in reversed(range(len(entries))):
        if entries[place] in names:
            del entries[place]


def _put_in(name: str, key: str, document: TOMLDocument) -> None:
    import tomlkit

    if "plugins" not in document:
        document["plugins"] = tomlkit.table()
    table: Any = document["plugins"]
    if name not in table:
        table[name] = tomlkit.array()
    if key not in table[name]:
        table[name].append(key)


def _still(key: str, said: str, *, on: bool) -> str:
    names = "AGENTHOST_PLUGINS__ENABLE or AGENTHOST_PLUGINS__DISABLE"
    pattern = f"a pattern of plugins.disable in {FILE}, or " if on else ""
    return f"{key} would not be {said}: {pattern}{names} says otherwise; change that"
