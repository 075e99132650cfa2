"""``agenthost trigger``: list, make, enable, disable and delete, over the API."""

from __future__ import annotations

import json
from typing import Any, Protocol
from urllib.parse import quote

import click


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object) -> Any:
        """Send JSON and read the answer's."""

    def put(self, path: str, body: object = None) -> Any:
        """Have something be so and read the answer's JSON."""

    def delete(self, path: str) -> Any:
        """Have something deleted and read the answer's JSON."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""


_as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print what the API answers."
)


@click.group()
def trigger() -> None:
    """Have agents told of events."""


@trigger.command("list")
@click.option("--agent", help="Name or id of the agent whose triggers are listed.")
@_as_json
@click.pass_obj
def list_triggers(here: Here, *, agent: str | None, as_json: bool) -> None:
    """List the triggers."""
    api = here.connect()
    agent_id = f"?agent_id={_agent(api, agent)}" if agent else ""
    rows = api.get(f"/api/triggers{agent_id}")
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        state = "enabled" if row["enabled"] else row["paused_reason"] or "spent"
        most = f" of {row['max_fires']}" if row["max_fires"] else ""
        fired = f"fired {row['fire_count']}{most}"
        pattern = json.dumps(row["pattern"])
        click.echo(f"{row['id']}  {row['agent_id']}  {pattern}  {fired}  {state}")


@trigger.command()
@click.argument("agent")
@click.argument("pattern")
@click.option(
    "--prompt", help="What the agent is told; {{event}} stands for the event."
)
@click.option("--max-fires", type=click.IntRange(0), help="Disable it after so many.")
@click.option("--cooldown", type=click.FloatRange(0), help="Seconds that it rests.")
@click.option("--session", type=click.Choice(["own", "new", "persistent", "rolling"]))
@click.option("--keep", type=click.IntRange(1), help="Messages of a rolling session.")
@click.option("--allowance", type=click.FloatRange(0), help="US dollars a day.")
@_as_json
@click.pass_obj
def create(
    here: Here, /, agent: str, pattern: str, *, as_json: bool, **terms: Any
) -> None:
    """Have AGENT (a name or an id) told of what PATTERN says.

    PATTERN is one word, such as lifecycle, or JSON: '{"content_match": {"substring":
    "order"}}'.
    """
    api = here.connect()
    names = {
        "prompt": "prompt_template",
        "cooldown": "cooldown_secs",
        "allowance": "allowance_usd",
    }
    said = {names.get(name, name): value for name, value in terms.items()}
    body = {name: value for name, value in said.items() if value is not None}
    body |= {"agent_id": _agent(api, agent), "pattern": _pattern(pattern)}
    answer = api.post("/api/triggers", body)
    click.echo(json.dumps(answer, indent=2) if as_json else answer["trigger_id"])


@trigger.command()
@click.argument("trigger_id")
@click.pass_obj
def enable(here: Here, trigger_id: str) -> None:
    """Let TRIGGER_ID fire again."""
    here.connect().put(_path(trigger_id), {"enabled": True})
    click.echo(f"enabled {trigger_id}")


@trigger.command()
@click.argument("trigger_id")
@click.pass_obj
def disable(here: Here, trigger_id: str) -> None:
    """Let TRIGGER_ID fire no more."""
    here.connect().put(_path(trigger_id), {"enabled": False})
    click.echo(f"disabled {trigger_id}")


@trigger.command()
@click.argument("trigger_id")
@click.pass_obj
def delete(here: Here, trigger_id: str) -> None:
    """Delete TRIGGER_ID; what it has set off goes on."""
    here.connect().delete(_path(trigger_id))
    click.echo(f"deleted {trigger_id}")


@trigger.command()
@click.argument("trigger_id")
@_as_json
@click.pass_obj
def occasions(here: Here, trigger_id: str, *, as_json: bool) -> None:
    """Tell what became of the firings of TRIGGER_ID, the newest first."""
    answer = here.connect().get(f"{_path(trigger_id)}/occasions")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    for row in answer["occasions"]:
        click.echo(f"{row['at']}  {row['id']}  {row['state']:<9} {row['detail']}")


def _agent(api: Api, wanted: str) -> str:
    """Find an agent's id by its name or id."""
    rows = api.get("/api/agents")
    for row in rows:
        if wanted in (row["name"], row["id"]):
            return str(row["id"])
    known = ", ".join(sorted(row["name"] for row in rows)) or "none"
    raise click.ClickException(f"no agent is named {wanted!r}; there are: {known}")


def _pattern(text: str) -> Any:
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.ClickException(f"the pattern is no JSON: {error}") from error


def _path(trigger_id: str) -> str:
    return f"/api/triggers/{quote(trigger_id, safe='')}"
