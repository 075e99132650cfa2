"""``agenthost capability``: validate, resolve, explain, compare, write the schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .diff import compare
from .findings import CapabilityError, Json
from .folders import Folders
from .manifests import read_manifests
from .policy import Policy, read_report
from .schema import capability_schema
from .tables import Tables
from .terms import LOCAL, MANIFESTS, PLATFORMS, Caller, Mode, ShellCall, host_platform
from .validate import Report

FILE = click.Path(exists=True, path_type=Path)


@click.group()
def capability() -> None:
    """Desktop capability files: check them, and ask what they allow."""


def _mode(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--mode",
        type=click.Choice([mode.value for mode in Mode]),
        default=Mode.STRICT.value,
        help="strict is the JSON Schema, lenient what the reference runtime loads",
    )(command)


def _manifests(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--manifests",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="a folder of further permission tables (*.toml)",
    )(command)


def _platform(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--platform", type=click.Choice(PLATFORMS), default=host_platform
    )(command)


def _json(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--json", "as_json", is_flag=True, help="write JSON")(command)


@capability.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@_mode
@_manifests
@_json
def validate(
    files: tuple[Path, ...], mode: str, manifests: Path | None, *, as_json: bool
) -> None:
    """Check files, and folders of files; end with 1 when they are invalid."""
    report = _report(files, mode, _tables(files, manifests))
    if as_json:
        _write(
            {
                "valid": report.valid,
                "errors": [finding.as_json() for finding in report.errors],
                "strict_errors": [f.as_json() for f in report.strict_errors],
            }
        )
    else:
        for finding in report.errors:
            click.echo(str(finding))
        for finding in report.strict_errors:
            click.echo(f"{finding} (refused by strict validation only)")
        count = len(report.capabilities)
        click.echo(f"{count} capabilities are valid" if report.valid else "invalid")
    sys.exit(0 if report.valid else 1)


@capability.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@_platform
@_mode
@_manifests
def resolve(
    files: tuple[Path, ...], platform: str, mode: str, manifests: Path | None
) -> None:
    """Show what files resolve to on a platform, as JSON."""
    _write(_policy(files, mode, manifests).on(platform).as_json())


@capability.command()
@click.argument("command")
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--window", required=True, help="the window's label")
@click.option("--webview", help="the webview's label; the window's when left out")
@click.option("--origin", default=LOCAL, help="local, or the URL of the page")
@click.option("--name", help="for shell:execute and shell:spawn: the scope's name")
@click.option("--arg", "args", multiple=True, help="an argument of the program")
@click.option("--sidecar", is_flag=True, help="the program is called as a sidecar")
@_platform
@_mode
@_manifests
def explain(**given: Any) -> None:
    """Say whether COMMAND is allowed by FILES, and why; end with 1 when it is not."""
    policy = _policy(given["files"], given["mode"], given["manifests"])
    caller = Caller(given["window"], given["webview"], given["origin"])
    allowed, reason = _explained(policy, caller, given)
    click.echo(f"{'allowed' if allowed else 'refused'}: {reason}")
    sys.exit(0 if allowed else 1)


@capability.command()
@_manifests
def schema(manifests: Path | None) -> None:
    """Write the JSON Schema (draft-07) of capability files."""
    _write(capability_schema(_tables((), manifests)))


@capability.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@_mode
@_manifests
@_json
def diff(
    old: Path, new: Path, mode: str, manifests: Path | None, *, as_json: bool
) -> None:
    """Say what NEW allows that OLD did not (+), and no longer allows (-)."""
    changes = compare(*(_policy((path,), mode, manifests) for path in (old, new)))
    if as_json:
        _write([change.as_json() for change in changes])
        return
    for change in changes:
        on_all = len(change.platforms) == len(PLATFORMS)
        where = "" if on_all else f" on {', '.join(change.platforms)}"
        click.echo(f"{'+' if change.allowed else '-'} {change.grant}{where}")


def _explained(
    policy: Policy, caller: Caller, given: dict[str, Any]
) -> tuple[bool, str]:
    command, platform = given["command"], given["platform"]
    try:
        if given["name"] is None:
            decision = policy.decide(command, *caller, platform)
            return decision.allowed, decision.reason
        call = ShellCall(given["name"], given["args"], command, given["sidecar"])
        run = policy.decide_shell(call, caller, Folders(platform))
        argv = f"; argv: {json.dumps(run.argv)}" if run.argv else ""
        return run.allowed, run.reason + argv
    except CapabilityError as error:
        raise click.ClickException(error.message) from error


def _tables(files: tuple[Path, ...], manifests: Path | None) -> Tables:
    folders = [path / MANIFESTS for path in files if path.is_dir()]
    folders += [manifests] if manifests else []
    try:
        return Tables.builtin(*(m for f in folders for m in read_manifests(f)))
    except CapabilityError as error:
        raise click.ClickException(error.message) from error


def _report(files: tuple[Path, ...], mode: str, tables: Tables) -> Report:
    return read_report(files, tables, Mode(mode))


def _policy(files: tuple[Path, ...], mode: str, manifests: Path | None) -> Policy:
    tables = _tables(files, manifests)
    try:
        return Policy(_report(files, mode, tables).checked(), tables)
    except CapabilityError as error:
        told = "\n".join(str(finding) for finding in error.findings)
        raise click.ClickException(told) from error


def _write(value: Json | dict[str, Any]) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
