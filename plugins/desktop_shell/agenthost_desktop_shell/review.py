"""``agenthost capability diff``: what a change of capabilities lets through."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from . import options
from .diff import Change, compare, risk
from .findings import CapabilityError
from .options import FILE, opened, unusable, write
from .project import Project
from .terms import PLATFORMS, Mode

WITHIN = 60.0
SHOWN = 8
HEADINGS = {
    (True, True): "widened, at high risk",
    (True, False): "widened",
    (False, True): "narrowed",
    (False, False): "narrowed",
}


@click.command()
@click.argument("paths", nargs=-1, type=FILE)
@click.option("--git", "revisions", help="A..B, or A: the files of two revisions")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]))
@click.option(
    "--fail-on",
    type=click.Choice(["widened", "high-risk"]),
    help="end with 1 when something is allowed that was not",
)
@options.mode(Mode.STRICT)
@options.manifests
@options.as_json
def diff(paths: tuple[Path, ...], revisions: str | None, **given: Any) -> None:
    """Say what NEW allows that OLD did not (+), and no longer allows (-).

    PATHS are OLD and NEW; with --git one path, this folder when left out.
    """
    with ExitStack() as stack:
        old, new = _sides(paths, revisions, stack)
        read = [opened((p,), given["mode"], given["manifests"]) for p in (old, new)]
        changes = _compared(*read)
    form = "json" if given["as_json"] else given["form"]
    if form == "json":
        write([change.as_json() for change in changes])
    else:
        lines = _markdown(changes) if form == "markdown" else _lines(changes)
        click.echo("\n".join(lines), nl=bool(changes) or form == "markdown")
    widened = [change for change in changes if change.allowed]
    grave = [change for change in widened if risk(change.grant)]
    refused = {"widened": widened, "high-risk": grave}.get(given["fail_on"] or "")
    sys.exit(1 if refused else 0)


def _sides(
    paths: tuple[Path, ...], revisions: str | None, stack: ExitStack
) -> tuple[Path, Path]:
    if revisions is None:
        if len(paths) != 2:
            raise click.UsageError("give OLD and NEW, or --git A..B and one path")
        return paths[0], paths[1]
    if len(paths) > 1:
        raise click.UsageError("--git takes one path")
    path = (paths[0] if paths else Path()).resolve()
    old, dots, new = revisions.partition("..")
    before = _checked_out(old or "HEAD", path, stack)
    return before, _checked_out(new or "HEAD", path, stack) if dots else path


def _checked_out(revision: str, path: Path, stack: ExitStack) -> Path:
    """Write a revision's files below a path to a folder of their own."""
    folder = path if path.is_dir() else path.parent
    top = Path(_git(folder, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    inside = path.relative_to(top).as_posix()
    if revision.startswith("-"):
        raise click.UsageError(f"--git: {revision!r} is no revision")
    packed = _git(top, "archive", "--format=tar", revision, "--", inside)
    target = Path(stack.enter_context(TemporaryDirectory(prefix="capability-")))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(target, filter="data")
    return target / inside


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        # A list of arguments, no shell, and the git that the user has.
        done = subprocess.run(  # noqa: S603  # nosec B603, B607
            ["git", "-C", str(folder), *arguments],  # noqa: S607
            capture_output=True,
            check=True,
            timeout=WITHIN,
        )
    except subprocess.CalledProcessError as error:
        told = error.stderr.decode("utf-8", "replace").strip()
        raise click.UsageError(f"--git: {told}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise click.UsageError("--git: git cannot be run; install it") from error
    return done.stdout


def _compared(old: Project, new: Project) -> tuple[Change, ...]:
    try:
        return compare(old.policy, new.policy)
    except CapabilityError as error:
        raise unusable(error) from error


def _grouped(
    changes: Sequence[Change],
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each heading, what is riskiest first, and its lines: sign and text."""
    groups: dict[str, dict[tuple[object, ...], list[Change]]] = {}
    ordered = sorted(changes, key=lambda c: (not c.allowed, not risk(c.grant)))
    for change in ordered:
        heading = HEADINGS[change.allowed, risk(change.grant)]
        key = change.allowed, change.grant._replace(command=""), change.platforms
        groups.setdefault(heading, {}).setdefault(key, []).append(change)
    for heading, together in groups.items():
        yield heading, [_told(alike) for alike in together.values()]


def _told(alike: list[Change]) -> tuple[str, str]:
    first = alike[0]
    on_all = len(first.platforms) == len(PLATFORMS)
    where = "" if on_all else f" on {', '.join(first.platforms)}"
    sign = "+" if first.allowed else "-"
    if len(alike) == 1:
        return sign, f"{first.grant}{where}"
    names = [change.grant.command for change in alike]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    rest = str(first.grant._replace(command="")).strip()
    listed = ", ".join(names[:SHOWN])
    return sign, f"{len(names)} commands {rest}{where}: {listed}{more}"


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    for heading, lines in _grouped(changes):
        yield f"{heading}:"
        yield from (f"{sign} {text}" for sign, text in lines)


def _markdown(changes: Sequence[Change]) -> Iterator[str]:
    yield "### Capabilities"
    if not changes:
        yield "\nNothing more and nothing less is allowed."
    for heading, lines in _grouped(changes):
        yield f"\n**{heading[0].upper()}{heading[1:]}**\n"
        yield from (f"- `{sign}` {_escaped(text)}" for sign, text in lines)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>|" else c for c in text)
