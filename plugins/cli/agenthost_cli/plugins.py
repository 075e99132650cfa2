"""``agenthost plugins``: what is installed, how it stands, on and off."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import click

from .home import home_folder
from .new_plugin import KINDS


@click.group()
def plugins() -> None:
    """See what is installed, switch it on and off, begin one of your own."""


@plugins.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_plugins(*, as_json: bool) -> None:
    """List plugins: enabled, disabled or failed; in the daemon when one runs."""
    home = home_folder()
    rows = _running_plugins(home)
    if rows is None:
        rows = _loadable_plugins(home)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        origin = f"{row['distribution']} {row['version']}"
        reason = f"  {row['reason']}" if row["reason"] else ""
        click.echo(f"{row['key']:<44} {row['status']:<9} {origin}{reason}")


def _running_plugins(home: Path) -> list[dict[str, Any]] | None:
    from .client import Client
    from .running import NoDaemon

    try:
        detail = Client(home).get("/api/health/detail")
    except NoDaemon:
        return None
    shown = ("key", "status", "distribution", "version", "reason")
    return [{name: row[name] for name in shown} for row in detail["plugins"]]


def _loadable_plugins(home: Path) -> list[dict[str, Any]]:
    from .extensions import load_plugins

    # The list tells each failure itself; the loader's log lines would say it twice.
    logging.getLogger("agenthost").addHandler(logging.NullHandler())
    return [
        {
            "key": state.key,
            "status": str(state.status),
            "distribution": state.distribution,
            "version": state.version,
            "reason": state.reason,
        }
        for state in load_plugins(home).states()
    ]


@plugins.command("info")
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_plugin(key: str, *, as_json: bool) -> None:
    """Show a plugin, KEY or its slug: how it stands, what it offers and can be told.

    What it offers is known of a running daemon.
    """
    from .plugin_info import lines_of, plugin_info

    info = plugin_info(home_folder(), key)
    click.echo(json.dumps(info, indent=2) if as_json else "\n".join(lines_of(info)))


@plugins.command("enable")
@click.argument("key")
def enable_plugin(key: str) -> None:
    """Enable a plugin, KEY or its slug, from the next start on."""
    from .switching import switch

    click.echo(switch(home_folder(), key, on=True))


@plugins.command("disable")
@click.argument("key")
def disable_plugin(key: str) -> None:
    """Disable a plugin, KEY or its slug, from the next start on; its data stays."""
    from .switching import switch

    click.echo(switch(home_folder(), key, on=False))


@plugins.command("purge")
@click.argument("key")
@click.option("--yes", is_flag=True, help="Remove it; it cannot be brought back.")
def purge_plugin(key: str, *, yes: bool) -> None:
    """List what a plugin that is disabled or gone has left; with --yes remove it.

    KEY is its key or its slug. The daemon must not run.
    """
    from .purging import purge

    left = list(purge(home_folder(), key, drop=yes).lines())
    for line in left:
        click.echo(f"removed: {line}" if yes else line)
    if not left:
        click.echo(f"{key} has left nothing")
    elif not yes:
        click.echo(f"to remove this: agenthost plugins purge {key} --yes", err=True)


@plugins.command("new")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="The folder to make; named after the plugin by default.",
)
@click.option("--author", default="", help="Who writes it.")
def new_plugin(kind: str, name: str, into: Path | None, author: str) -> None:
    """Write a plugin of your own of a KIND, with its test; NAME is for people."""
    from .new_plugin import write_plugin

    folder = write_plugin(kind, name, into, author)
    click.echo(f"{folder} is made; its README.md tells how to install and test it")


@plugins.command("commands")
def list_commands() -> None:
    """List the commands that plugins bring."""
    from .extensions import plugin_commands

    for name, command in sorted(plugin_commands(home_folder()).items()):
        click.echo(f"{name:<20} {command.get_short_help_str()}")
