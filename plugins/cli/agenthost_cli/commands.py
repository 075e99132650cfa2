"""The commands of ``agenthost``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import click

from . import INTERRUPTED
from .errors import CommandError
from .here import Here
from .home import home_folder
from .plugins import plugins

STOP_SECONDS = 75
MESSAGE_SECONDS = 900


class Commands(click.Group):
    """Own commands first; a name that is not ours is looked for among the plugins."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command, loading plugins only for a name that is not ours."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        from .extensions import plugin_commands

        return plugin_commands(home_folder()).get(cmd_name)


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


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:  # noqa: FBT001 - click calls it so
    if asked:
        context.invoke(version)
        context.exit()


def _name_home(context: click.Context, _: click.Parameter, home: Path | None) -> None:
    if home is not None:
        # The daemon that a command starts, and all that read the environment, see it.
        os.environ["AGENTHOST_HOME"] = str(home)
        context.obj = Here(home)


@click.group(
    cls=Commands,
    epilog="Plugins bring more: agenthost plugins commands",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path, resolve_path=True),
    is_eager=True,
    expose_value=False,
    callback=_name_home,
    help="The folder of the daemon, in place of AGENTHOST_HOME.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def agenthost() -> None:
    """Run a daemon that hosts AI agents, and speak to it."""


@agenthost.command()
@click.option("--detach", is_flag=True, help="Go on in the background.")
@click.option("--make-key", is_flag=True, help="First make a key, if there is none.")
def start(*, detach: bool, make_key: bool) -> None:
    """Start the daemon of this home."""
    from . import first_start

    home = home_folder()
    if make_key:
        first_start.make_key(home)
    elif first_start.asks(home):
        first_start.offer_key(home)
    if detach:
        from .detached import start_detached

        click.echo(f"started, process {start_detached(home)}")
        return
    from .foreground import run_daemon

    raise click.exceptions.Exit(run_daemon(home))


@agenthost.command()
@click.pass_obj
def stop(here: Here) -> None:
    """Stop the daemon and wait until it is gone."""
    client = here.connect()
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
@click.pass_obj
def status(here: Here, *, as_json: bool) -> None:
    """Tell how the daemon is."""
    answer = here.connect().get("/api/status")
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
@click.pass_obj
def message(here: Here, agent: str, text: str) -> None:
    """Send TEXT to AGENT (a name or an id) and print the answer as it comes.

    TEXT - is read from standard input. Ctrl-C stops the answer.
    """
    from .chat import MARKS

    text = here.text(text)
    client = here.connect()
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


@agenthost.command()
@click.argument("agent", required=False)
@click.pass_obj
def chat(here: Here, agent: str | None) -> None:
    """Talk to AGENT (a name or an id; the first one by default) in the terminal.

    Ctrl-C stops an answer; at the prompt it clears the line, Ctrl-D leaves. A question
    of the agent is asked here, and may be answered elsewhere. /help shows commands.
    """
    from .chat import Chat

    Chat(here.connect(), agent).run(here.home)


@agenthost.command("open")
@click.option("--print", "only", is_flag=True, help="Print its address alone.")
@click.pass_obj
def open_page(here: Here, *, only: bool) -> None:
    """Open the page of the daemon in a browser."""
    address = here.connect().address
    click.echo(address)
    if not only and click.launch(address) != 0:
        raise CommandError("no browser could be opened; visit the address above")


@agenthost.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands.

    Where the shell looks for completions, or: eval "$(agenthost completion bash)"
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise CommandError(f"there is no completion for {shell}")
    click.echo(found(agenthost, {}, "agenthost", "_AGENTHOST_COMPLETE").source())


@agenthost.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended safely.")
@click.option("--json", "as_json", is_flag=True, help="Print findings for programs.")
@click.pass_obj
def doctor(here: Here, *, repair: bool, as_json: bool) -> None:
    """Look for what goes wrong most often; 1 when something is broken."""
    from .doctor import examine

    findings = examine(here.home, repair=repair)
    if as_json:
        here.json([finding._asdict() for finding in findings])
    else:
        rows = [(each.check, each.verdict, each.told) for each in findings]
        here.table(["check", "verdict", "found"], rows)
    if any(each.verdict == "broken" for each in findings):
        raise click.exceptions.Exit(1)


agenthost.add_command(plugins)
