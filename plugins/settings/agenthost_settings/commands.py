"""``agenthost config``: show the configuration, ask for a key, set one, check all."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from .rehearsal import Rehearsal

P = ParamSpec("P")
T = TypeVar("T")

STANDARD_INPUT = "-"


class Here(Protocol):
    """What the command line gives to commands."""

    home: Path

    def connect(self) -> Api:
        """Find the running daemon."""


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def post(self, path: str, body: object = None) -> Any:
        """Send JSON and read the answer's."""


@click.group()
def config() -> None:
    """See and change the configuration of this home."""
    # What fails is told by the commands; the log would say it twice.
    logging.getLogger("agenthost").addHandler(logging.NullHandler())


@config.command()
@click.argument("key", default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(here: Here, key: str, *, as_json: bool) -> None:
    """Show what is in force, all or below KEY, and where each value comes from.

    Secrets are masked.
    """
    from .rows import below, rows_of

    found = _rehearsed(here.home)
    rows = list(rows_of(found))
    rows = below(rows, key) if key else rows
    if not rows:
        _path(found, key)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    for row in rows:
        click.echo(row.line)


@config.command()
@click.argument("key")
@click.pass_obj
def get(here: Here, key: str) -> None:
    """Print the value of KEY; secrets are masked."""
    from .rows import below, rows_of

    found = _rehearsed(here.home)
    rows = below(rows_of(found), ".".join(_path(found, key)))
    if len(rows) == 1:
        value = rows[0].value
        click.echo(value if isinstance(value, str) else rows[0].shown)
        return
    for row in rows:
        click.echo(row.line)


@config.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@click.pass_obj
def set_key(here: Here, key: str, value: str) -> None:
    """Write VALUE for KEY into config.toml, if a start would accept it.

    Lists are comma separated or JSON, tables JSON. A VALUE of - is read from standard
    input, so that a secret stands in no history.
    """
    from agenthost_toml.writing import alone

    if value == STANDARD_INPUT:
        value = sys.stdin.read().rstrip("\r\n")
    try:
        with alone(here.home):
            _set(here.home, key, value)
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise click.ClickException(
            f"config.toml cannot be written: {reason}"
        ) from error


def _set(home: Path, key: str, value: str) -> None:
    from agenthost_toml.environment import value_of
    from agenthost_toml.writing import replace

    from .editing import FILE, change

    found = _best_known(home)
    path, said = _path(found, key), found.settings.said
    given = _writable(value_of(said.keys.shape, path, value))
    text = _ours(change, home, path, given, said.keys)
    variable = said.layer.variable(path)
    # What the file says must be right also when the variable is gone.
    environ = {name: each for name, each in os.environ.items() if name != variable}
    try:
        _rehearsed(home, environ, text)
    except click.ClickException as error:
        refused = f"{FILE} stays as it is, a start would refuse:\n{error.message}"
        raise click.ClickException(refused) from None
    replace(home / FILE, text)
    click.echo(
        f"{key} is set in {FILE}; a daemon that runs reads it at: agenthost reload"
    )
    if variable:
        click.echo(f"warning: {variable} is set here, and wins over the file", err=True)


@config.command("check")
@click.pass_obj
def check_all(here: Here) -> None:
    """Say what a start would say of the configuration; 1 when it would refuse."""
    for warning in _rehearsed(here.home).warnings:
        click.echo(f"warning: {warning}")
    click.echo("the configuration is good")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print what the API answers.")
@click.pass_obj
def reload(here: Here, *, as_json: bool) -> None:
    """Have the running daemon read config.toml anew; tell what needs a restart."""
    told = here.connect().post("/api/config/reload")
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    for warning in told["warnings"]:
        click.echo(f"warning: {warning}", err=True)
    for key in told["in_effect"]:
        click.echo(f"in effect        {key}")
    for key in told["need_restart"]:
        click.echo(f"needs a restart  {key}")
    if not (told["in_effect"] or told["need_restart"]):
        click.echo("nothing has changed")


def _writable(value: Any) -> Any:
    """Refuse what TOML, or any reader of it, has no way to say."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        value = None
    if value is None:
        raise click.ClickException("VALUE is nothing that can be written; quote it")
    return value


def _best_known(home: Path) -> Rehearsal:
    """Read what there is; a file that is wrong must keep nobody from mending it."""
    try:
        return _rehearsed(home)
    except click.ClickException:
        return _rehearsed(home, {}, "")


def _path(found: Rehearsal, key: str) -> tuple[str, ...]:
    """Take a key apart.

    Raises:
        click.ClickException: There is none like it, or nobody reads it.
    """
    from agenthost_toml.environment import value_of

    from .claims import overlap

    keys = found.settings.said.keys
    first, *rest = key.split(".")
    path = (keys.aliases.get(first, first), *rest)
    for name, why in found.settings.idle.items():
        if overlap(name, ".".join(path)):
            raise click.ClickException(why)
    try:
        value_of(keys.shape, path, "")
    except KeyError as error:
        raise click.ClickException(
            f"{key}: there is no such key{error.args[0]}"
        ) from None
    return path


def _rehearsed(
    home: Path, environ: Mapping[str, str] = os.environ, text: str | None = None
) -> Rehearsal:
    from .rehearsal import rehearse

    return _ours(asyncio.run, rehearse(home, environ, text))


def _ours(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call it; an error of agenthost is one of the command line."""
    from agenthost import AgentHostError

    try:
        return call(*args, **kwargs)
    except AgentHostError as error:
        raise click.ClickException(error.message) from error
