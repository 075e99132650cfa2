"""The plugins of this installation, and the commands they bring."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    import click
    from agenthost import Plugins


def load_plugins(home: Path, text: str | None = None) -> Plugins:
    """Load what the home's configuration enables, each failure kept to itself.

    Args:
        home: The home.
        text: What is read in place of its file.

    Raises:
        CommandError: The configuration cannot be used, or two plugins share a key.
    """
    from agenthost import AgentHostError, Plugins, load_config

    plugins = Plugins()
    try:
        asyncio.run(plugins.load(load_config(home, os.environ, text).config))
    except AgentHostError as error:
        raise CommandError(error.message) from error
    return plugins


def plugin_commands(home: Path) -> Mapping[str, click.Command]:
    """Commands by name that enabled plugins offer; the first of a name stays.

    A file that is wrong takes away none of those that are enabled by default, which may
    help to mend it.
    """
    try:
        plugins = load_plugins(home)
    except CommandError:
        plugins = load_plugins(home, "")
    offered = asyncio.run(plugins.collect("register_command"))
    commands: dict[str, click.Command] = {}
    for _, spec in offered:
        commands.setdefault(spec.command.name or "", spec.command)
    return commands
