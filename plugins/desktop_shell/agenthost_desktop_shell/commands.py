"""``agenthost capability``: check, resolve, write the schema; and the others' group."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from . import options
from .asking import explain, matrix
from .findings import CapabilityError, Finding
from .framework import read_tables
from .lints import lint
from .options import FILE, opened, write
from .outputs import FORMATS, severity
from .project import Project, find_projects
from .review import diff
from .rules import RULES
from .schema import capability_schema
from .suggesting import suggest_permissions
from .tables import Tables
from .terms import Mode

GRAVE = ("error", "warning", "note")


@click.group()
def capability() -> None:
    """Desktop capability files: check them, and ask what they allow."""


capability.add_command(explain)
capability.add_command(matrix)
capability.add_command(diff)
capability.add_command(suggest_permissions)


@capability.command()
@click.argument("paths", nargs=-1, type=FILE)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text")
@click.option("--ignore", multiple=True, help="a rule, or rule=capability")
@click.option("--fail-on", type=click.Choice(GRAVE), default="error", show_default=True)
@options.mode(Mode.LENIENT)
@options.manifests
def check(
    paths: tuple[Path, ...], form: str, ignore: tuple[str, ...], **given: Any
) -> None:
    """Check an application: its files, and what they most likely do not mean.

    PATHS are application folders, or repositories that hold some (this folder when left
    out), capability files, or - for standard input. Ends with 1 when there is something
    as grave as --fail-on, with 2 when there is nothing to check.
    """
    _refuse_unknown(ignore)
    found: list[Finding] = []
    for group in _groups(paths or (Path(),)):
        project = opened(group, given["mode"], given["manifests"])
        found += judged(project, frozenset(ignore))
    if found or form != "text":
        click.echo(FORMATS[form](found))
    limit = GRAVE.index(given["fail_on"])
    grave = [f for f in found if GRAVE.index(severity(f)) <= limit]
    sys.exit(1 if grave else 0)


def judged(project: Project, ignore: frozenset[str] = frozenset()) -> list[Finding]:
    """Everything there is to say of a project, what is invalid first."""
    report = project.report
    found = [*report.errors]
    for rule, findings in (
        ("strict-only", report.strict_errors),
        ("other-platform", report.warnings),
    ):
        if rule not in ignore:
            found += [finding.under(rule) for finding in findings]
    return [*found, *lint(project, ignore)]


def _groups(paths: tuple[Path, ...]) -> list[tuple[Path, ...]]:
    """What is judged together: each application alone, loose files with each other."""
    folders = [path for path in paths if path.is_dir()]
    loose = tuple(path for path in paths if not path.is_dir())
    roots = [root for folder in folders for root in find_projects(folder)]
    return [*((root,) for root in roots), *((loose,) if loose else ())]


def _refuse_unknown(ignore: tuple[str, ...]) -> None:
    for item in ignore:
        rule = item.partition("=")[0]
        if rule not in RULES:
            known = ", ".join(RULES)
            raise click.UsageError(f"--ignore: unknown rule {rule!r}; one of {known}")


@capability.command()
@options.files
@options.mode(Mode.STRICT)
@options.manifests
@options.as_json
def validate(
    files: tuple[Path, ...], mode: str, manifests: tuple[Path, ...], *, as_json: bool
) -> None:
    """Check files, and folders of files; end with 1 when they are invalid."""
    report = opened(files, mode, manifests).report
    if as_json:
        write(
            {
                "valid": report.valid,
                "errors": [finding.as_json() for finding in report.errors],
                "strict_errors": [f.as_json() for f in report.strict_errors],
                "warnings": [f.as_json() for f in report.warnings],
            }
        )
    else:
        for finding in report.errors:
            click.echo(str(finding))
        for finding in report.strict_errors:
            click.echo(f"{finding} (refused by strict validation only)")
        for finding in report.warnings:
            click.echo(f"warning: {finding}")
        count = len(report.capabilities)
        valid = "1 capability is" if count == 1 else f"{count} capabilities are"
        click.echo(f"{valid} valid" if report.valid else "invalid")
    sys.exit(0 if report.valid else 1)


@capability.command()
@options.files
@options.platform
@options.mode(Mode.STRICT)
@options.manifests
def resolve(
    files: tuple[Path, ...], platform: str, mode: str, manifests: tuple[Path, ...]
) -> None:
    """Show what files resolve to on a platform, as JSON."""
    project = opened(files, mode, manifests)
    try:
        write(project.policy(platform).on(platform).as_json())
    except CapabilityError as error:
        raise options.unusable(error) from error


@capability.command()
@click.argument("paths", nargs=-1, type=FILE)
@options.manifests
def schema(paths: tuple[Path, ...], manifests: tuple[Path, ...]) -> None:
    """Write the JSON Schema (draft-07) of capability files.

    With an application's folder the schema knows the permissions of its plugins.
    """
    try:
        tables = Tables.builtin(*read_tables(manifests))
    except CapabilityError as error:
        raise options.unusable(error) from error
    write(
        capability_schema(
            opened(paths, "lenient", manifests).tables if paths else tables
        )
    )
