"""``agenthost logs``: the log of the running daemon."""

from __future__ import annotations

import json

import click

from .here import Here
from .tables import plain

QUIET_SECONDS = 60
"""A stream that is silent for so long, without a comment even, has broken off."""
LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes.")
@click.option("--level", type=click.Choice(LEVELS), default="debug", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print an object a line.")
@click.pass_obj
def logs(here: Here, *, follow: bool, level: str, as_json: bool) -> None:
    """Print the newest lines of the log; Ctrl-C ends following."""
    path = f"/api/logs?level={level}&follow={str(follow).lower()}"
    for _, line in here.connect().events(path, timeout=QUIET_SECONDS):
        if as_json:
            click.echo(json.dumps(line))
            continue
        ids = " ".join(
            f"{key.removesuffix('_id')}={value}"
            for key, value in line.items()
            if key.endswith("_id")
        )
        said = f"{line['time']} {line['level']} {line['logger']}: {line['message']}"
        click.echo(plain(f"{said} [{ids}]" if ids else said))
        if "traceback" in line:
            click.echo("\n".join(map(plain, line["traceback"].splitlines())))
