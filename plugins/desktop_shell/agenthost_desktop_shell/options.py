"""The options that the commands share, and reading what they name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .findings import CapabilityError, Json
from .project import Project, open_project
from .terms import PLATFORMS, Mode, host_platform

FILE = click.Path(exists=True, allow_dash=True, path_type=Path)
Command = Callable[..., None]


def files(command: Command) -> Command:
    """One or more files or folders; ``-`` is standard input."""
    return click.argument("files", nargs=-1, required=True, type=FILE)(command)


def mode(default: Mode) -> Callable[[Command], Command]:
    """How strictly to validate."""
    return click.option(
        "--mode",
        type=click.Choice([mode.value for mode in Mode]),
        default=default.value,
        show_default=True,
        help="strict is the JSON Schema, lenient what the reference runtime loads "
        "(but for shell entries that can run nothing)",
    )


def manifests(command: Command) -> Command:
    """Further permission tables."""
    return click.option(
        "--manifests",
        type=click.Path(exists=True, path_type=Path),
        multiple=True,
        help="a file or folder of permission tables: acl-manifests.json, *.toml",
    )(command)


def platform(command: Command) -> Command:
    """The target."""
    return click.option(
        "--platform", type=click.Choice(PLATFORMS), default=host_platform
    )(command)


def as_json(command: Command) -> Command:
    """JSON instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="write JSON")(command)


class Unusable(click.ClickException):
    """What the arguments name cannot be read, or does not exist."""

    exit_code = 2


def opened(
    paths: tuple[Path, ...], mode: str, manifests: tuple[Path, ...], host: str = ""
) -> Project:
    """Read what the arguments name; end with 2 when that cannot be read.

    Raises:
        UsageError: There are no files, or a table or the configuration is unusable.
    """
    try:
        return open_project(paths, manifests, Mode(mode), host or None)
    except CapabilityError as error:
        raise unusable(error) from error


def unusable(error: CapabilityError) -> click.ClickException:
    """The error that ends the command with 2, each finding on its line."""
    return Unusable("\n".join(map(str, error.findings)))


def write(value: Json | dict[str, Any]) -> None:
    """Write JSON to standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
