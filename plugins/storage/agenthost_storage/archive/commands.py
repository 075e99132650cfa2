"""``agenthost backup``, ``restore`` and ``check``: copies of a home, and its health."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

import click
from agenthost import AgentHostError, Plugins, SchemaSpec, load_config

from .layout import told

P = ParamSpec("P")
T = TypeVar("T")
MIB = 2**20


class Here(Protocol):
    """What the command line gives to commands."""

    home: Path

    def json(self, answer: object) -> None:
        """Print what was found, for programs."""


def _plainly(command: Callable[P, T]) -> Callable[P, T]:
    """Tell what fails as a command does."""

    @wraps(command)
    def told_plainly(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (AgentHostError, OSError) as error:
            raise click.ClickException(told(error)) from error

    return told_plainly


_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_archive = click.argument(
    "archive", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--without-keys", is_flag=True, help="Leave the vault's key out.")
@_as_json
@click.pass_obj
@_plainly
def backup(here: Here, file: Path | None, *, without_keys: bool, as_json: bool) -> None:
    """Copy the whole home into FILE, also while its daemon runs.

    It holds the database, the configuration, the vault and its key, the workspaces and
    the audit trail's key: keep it as you keep them.
    """
    from .writing import write_backup

    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    target = file or Path(f"agenthost-{moment}.tar.gz")
    contents = write_backup(here.home, target.absolute(), keys=not without_keys)
    if as_json:
        here.json({**_summary(contents), "file": str(target)})
        return
    click.echo(f"{target}: {_told(contents)}")
    if without_keys:
        click.echo("the keys of vault and trail are not in it: keep them apart")
    elif os.environ.get("AGENTHOST_VAULT_KEY"):
        click.echo("the vault's key is in the environment, not in it: keep it apart")


@click.command()
@_archive
@click.option(
    "--to",
    "goal",
    required=True,
    type=click.Path(path_type=Path),
    help="The new home: a folder that is not there, or is empty.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Where its data goes, in place of what its configuration says.",
)
@_as_json
@click.pass_obj
@_plainly
def restore(
    here: Here, archive: Path, goal: Path, data: Path | None, *, as_json: bool
) -> None:
    """Make a home of ARCHIVE, once it is seen to be whole."""
    from .reading import restore_backup

    contents = restore_backup(archive, goal, _schemas(), data)
    if as_json:
        here.json({**_summary(contents), "home": str(goal)})
        return
    click.echo(f"{goal}: {_told(contents)}")
    if not contents.get("keys"):
        click.echo("its keys were left out: put vault.key and audit.key back")
    click.echo(f"start it with: agenthost --home {goal} start")


@click.command()
@click.argument(
    "archive",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@_as_json
@click.pass_obj
@_plainly
def check(here: Here, archive: Path | None, *, as_json: bool) -> None:
    """Look through the home's database, or through ARCHIVE; 1 when it is damaged."""
    if archive is not None:
        from .reading import check_backup

        contents = check_backup(archive, _schemas())
        said = f"{archive}: whole, {_told(contents)}"
        here.json(_summary(contents)) if as_json else click.echo(said)
        return
    from .layout import home_at
    from .reading import check_home

    problems = check_home(home_at(here.home).database)
    if as_json:
        here.json({"problems": problems})
    else:
        click.echo("\n".join(problems) or "the database is whole")
    if problems:
        raise click.exceptions.Exit(1)


def _schemas() -> Sequence[SchemaSpec]:
    """What this installation knows of a database, with all that is its own."""

    async def load() -> Sequence[SchemaSpec]:
        plugins = Plugins()
        await plugins.load(load_config(Path(os.devnull), {}, "").config)
        return [spec for _, spec in await plugins.collect("register_schema")]

    return asyncio.run(load())


def _summary(contents: dict[str, Any]) -> dict[str, Any]:
    files = contents["files"]
    facts = {key: contents.get(key) for key in ("agenthost", "made_at", "keys")}
    size = sum(each["size"] for each in files)
    return {**facts, "files": len(files), "bytes": size}


def _told(contents: dict[str, Any]) -> str:
    found = _summary(contents)
    size = f"{found['bytes'] / MIB:.1f} MiB"
    return f"{found['files']} files, {size}, made {found['made_at']}"
