"""``agenthost capability explain`` and ``matrix``: who may call what, and why."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from . import options
from .findings import CapabilityError, Json
from .folders import Folders
from .globs import is_literal
from .options import opened, unusable, write
from .policy import Policy
from .project import Project
from .terms import LOCAL, OPEN, Caller, Mode, ShellCall


@click.command()
@click.argument("command")
@options.files
@click.option("--window", required=True, help="the window's label")
@click.option("--webview", help="the webview's label; the window's when left out")
@click.option("--origin", default=LOCAL, help="local, or the URL of the page")
@click.option("--name", help="for shell:execute and shell:spawn: the scope's name")
@click.option("--arg", "args", multiple=True, help="an argument of the program")
@click.option("--sidecar", is_flag=True, help="the program is called as a sidecar")
@click.option("--path", help="for shell:open: the link")
@options.platform
@options.mode(Mode.STRICT)
@options.manifests
@options.as_json
def explain(**given: Any) -> None:
    """Say whether COMMAND is allowed by FILES, and why; end with 1 when it is not."""
    project = opened(given["files"], given["mode"], given["manifests"])
    try:
        decided = _decided(project, given)
    except CapabilityError as error:
        raise unusable(error) from error
    if given["as_json"]:
        write(decided)
    else:
        argv = f"; argv: {json.dumps(decided['argv'])}" if decided.get("argv") else ""
        verdict = "allowed" if decided["allowed"] else "refused"
        click.echo(f"{verdict}: {decided['reason']}{argv}")
    sys.exit(0 if decided["allowed"] else 1)


def _decided(project: Project, given: dict[str, Any]) -> dict[str, Json]:
    command, platform = given["command"], given["platform"]
    caller = Caller(given["window"], given["webview"], given["origin"])
    policy = project.policy(platform)
    if given["path"] is not None:
        if project.tables.command(command) != OPEN:
            raise click.UsageError(f"--path goes with {OPEN}")
        opens = project.config.opens(platform)
        return policy.decide_open(given["path"], caller, platform, opens).as_json()
    if given["name"] is None:
        return policy.decide(command, *caller, platform).as_json()
    call = ShellCall(given["name"], given["args"], command, given["sidecar"])
    folders = Folders(platform, project.config.identifier(platform))
    return policy.decide_shell(call, caller, folders).as_json()


@click.command()
@options.files
@options.platform
@options.mode(Mode.LENIENT)
@options.manifests
@options.as_json
def matrix(**given: Any) -> None:
    """Show which window may call which command, from which pages."""
    project = opened(given["files"], given["mode"], given["manifests"])
    try:
        policy = project.policy(given["platform"])
        rows = granted(policy, project.config.labels(), given["platform"])
    except CapabilityError as error:
        raise unusable(error) from error
    if given["as_json"]:
        write({command: {**row} for command, row in rows.items()})
        return
    labels = sorted({label for row in rows.values() for label in row})
    click.echo(_table(rows, labels))


def granted(
    policy: Policy, labels: set[str], platform: str
) -> dict[str, dict[str, list[Json]]]:
    """For each command and window, the pages that may call it: local, or patterns.

    The windows are those of the configuration and those that a capability names; a
    glob stands for the windows that nobody names.
    """
    resolved = policy.on(platform)
    every = set(labels)
    for capability in resolved.capabilities:
        every |= {*capability.windows, *capability.webviews}
    rows: dict[str, dict[str, list[Json]]] = {}
    for command, access in sorted(resolved.commands.items()):
        if access.denied:
            continue
        for label in sorted(every):
            met = resolved.windows(label) | resolved.webviews(label)
            if not is_literal(label):
                met |= _holding(policy, platform, label)
            if bits := access.bits & met:
                rows.setdefault(command, {})[label] = _pages(policy, platform, bits)
    return rows


def _holding(policy: Policy, platform: str, glob: str) -> int:
    capabilities = policy.on(platform).capabilities
    return sum(
        1 << place
        for place, capability in enumerate(capabilities)
        if glob in {*capability.windows, *capability.webviews}
    )


def _pages(policy: Policy, platform: str, bits: int) -> list[Json]:
    capabilities = policy.on(platform).capabilities
    met = [c for place, c in enumerate(capabilities) if bits >> place & 1]
    local = [LOCAL] if any(c.local for c in met) else []
    return [*local, *sorted({url for c in met for url in c.remote})]


def _table(rows: dict[str, dict[str, list[Json]]], labels: list[str]) -> str:
    """A line a command and a column a window: ``l`` for local pages, ``r`` remote."""
    width = max(map(len, rows), default=0)
    head = f"{'':{width}}  {'  '.join(labels)}"
    lines = [
        f"{command:{width}}  "
        + "  ".join(f"{_mark(row.get(label, [])):{len(label)}}" for label in labels)
        for command, row in rows.items()
    ]
    return "\n".join(line.rstrip() for line in (head, *lines))


def _mark(pages: list[Json]) -> str:
    remote = "r" if any(page != LOCAL for page in pages) else ""
    return ("l" if LOCAL in pages else "") + remote or "-"
