"""The commands of ``agenthost``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import INTERRUPTED
from .errors import CommandError
from .home import home_folder
from .plugins import plugins

if TYPE_CHECKING:
    from .client import Client

STOP_SECONDS = 75
MESSAGE_SECONDS = 900
MARKS = {
    "length": "the answer was cut off at its length limit",
    "content_filter": "the provider's content rules ended the answer",
}


class Commands(click.Group):
    """Own commands first; a name that is not ours is looked for among the plugins."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command, loading plugins only for a name that is not ours."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        from .extensions import plugin_commands

        return plugin_commands(home_folder()).get(cmd_name)


class Here:
    """What ``click.pass_obj`` gives to commands: the home, and its running daemon."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def connect(self) -> Client:
        """Find the running daemon; a CommandError when there is none."""
        from .client import Client

        return Client(self.home)


def run() -> int:
    """Run one command; its exit code is 0, 1, 2 for a wrong use, or 130."""
    try:
        code = agenthost(
            prog_name="agenthost", standalone_mode=False, obj=Here(home_folder())
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo(err=True)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


@click.group(cls=Commands, epilog="Plugins bring more: agenthost plugins commands")
def agenthost() -> None:
    """Run a daemon that hosts AI agents, and speak to it."""


@agenthost.command()
@click.option("--detach", is_flag=True, help="Go on in the background.")
def start(*, detach: bool) -> None:
    """Start the daemon of this home."""
    home = home_folder()
    if detach:
        from .detached import start_detached

        click.echo(f"started, process {start_detached(home)}")
        return
    from .foreground import run_daemon

    raise click.exceptions.Exit(run_daemon(home))


@agenthost.command()
def stop() -> None:
    """Stop the daemon and wait until it is gone."""
    from .client import Client

    client = Client(home_folder())
    answer = client.post("/api/shutdown")
    if turns := answer.get("running_turns"):
        click.echo(f"waiting for {turns} running turn{'s' if turns > 1 else ''}")
    deadline = time.monotonic() + STOP_SECONDS
    while _alive(client.daemon.pid):
        if time.monotonic() > deadline:
            raise CommandError(
                f"process {client.daemon.pid} still runs after {STOP_SECONDS} seconds"
            )
        time.sleep(0.05)
    click.echo("stopped")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "Z"


@agenthost.command()
@click.option("--json", "as_json", is_flag=True, help="Print what the API answers.")
def status(*, as_json: bool) -> None:
    """Tell how the daemon is."""
    from .client import Client

    answer = Client(home_folder()).get("/api/status")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    click.echo(f"{answer['status']}, up {int(answer['uptime_seconds'])} s")
    click.echo(f"model: {answer['default_provider']}/{answer['default_model']}")
    click.echo(f"agents: {answer['agent_count']}")
    for agent in answer["agents"]:
        model = f"{agent['model_provider']}/{agent['model_name']}"
        click.echo(f"  {agent['name']}  {agent['state']}  {model}  {agent['id']}")


@agenthost.command()
@click.argument("agent")
@click.argument("text")
def message(agent: str, text: str) -> None:
    """Send TEXT to AGENT (a name or an id) and print the answer as it comes.

    Ctrl-C stops the answer.
    """
    from .client import Client

    client = Client(home_folder())
    path = f"/api/agents/{client.agent_id(agent)}/message/stream"
    mark = ""
    # A stream ends its turn when the reader leaves, which is what Ctrl-C means here.
    for event, data in client.events(path, {"message": text}, timeout=MESSAGE_SECONDS):
        if event == "chunk":
            click.echo(data["content"], nl=False)
        elif event == "waiting":
            click.echo(data["message"], err=True)
        elif event == "error":
            click.echo()
            raise CommandError(data["error"])
        elif event == "done":
            mark = MARKS.get(data.get("finish"), "")
    click.echo()
    if mark:
        click.echo(f"[{mark}]", err=True)


@agenthost.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    click.echo(f"agenthost {version_of('agenthost')}")


agenthost.add_command(plugins)
