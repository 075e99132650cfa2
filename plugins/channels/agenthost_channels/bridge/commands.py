"""``agenthost channel``: channels, and who may speak there, over the API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import quote

import click


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object) -> Any:
        """Send JSON and read the answer's."""

    def put(self, path: str, body: object) -> Any:
        """Have something be so and read the answer's JSON."""

    def delete(self, path: str) -> Any:
        """Have something deleted and read the answer's JSON."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows below a head."""


as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what the API answers."
)


@click.group()
def channel() -> None:
    """See to chat channels, and to who may speak there."""


@channel.command("list")
@click.option("--all", "every", is_flag=True, help="Those that are off too.")
@as_json_option
@click.pass_obj
def list_channels(here: Here, *, every: bool, as_json: bool) -> None:
    """List the channels that are on, and how they stand."""
    answer = here.connect().get("/api/channels")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    shown = [each for each in answer["channels"] if every or each["enabled"]]
    if not shown:
        click.echo("no channel is on; docs/channels.md says how to switch one on")
        return
    heads = ("channel", "stands", "what is wrong")
    here.table(heads, [(each["name"], _state(each), each["trouble"]) for each in shown])


@channel.command()
@click.argument("channel_id")
@click.argument("code", required=False)
@click.option("--person", help="The id of the person it is; a new one by default.")
@click.option("--reject", is_flag=True, help="Take the code away instead.")
@as_json_option
@click.pass_obj
def pair(here: Here, /, channel_id: str, code: str | None, **said: Any) -> None:
    """Let in who shows CODE on CHANNEL_ID; without a code, list who asks."""
    api, path = here.connect(), f"{_path(channel_id)}/pairings"
    if code is None:
        _list_pairings(here, api.get(path), as_json=said["as_json"])
        return
    own = f"{path}/{quote(code, safe='')}"
    if said["reject"]:
        answer = api.delete(own)
        line = f"rejected {answer['code']}"
    else:
        body = {"person": said["person"]} if said["person"] else {}
        answer = api.post(f"{own}/approve", body)
        line = f"{answer['sender']} may speak, as {answer['person_name']}"
    click.echo(json.dumps(answer, indent=2) if said["as_json"] else line)


@channel.command()
@click.argument("channel_id")
@click.option("--to", help="Say something to this person, group or room as well.")
@click.option("--text", help="What to say; - reads standard input.")
@as_json_option
@click.pass_obj
def test(here: Here, /, channel_id: str, **said: Any) -> None:
    """Ask the service of CHANNEL_ID who we are, and say something there."""
    body = {}
    if said["to"]:
        body["to"] = said["to"]
    if said["text"]:
        if not said["to"]:
            raise click.UsageError("--text goes with --to")
        body["text"] = _read(said["text"])
    answer = here.connect().post(f"{_path(channel_id)}/test", body)
    if said["as_json"]:
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo("\n".join(_tried(answer)))
    sent = answer["said"] is None or answer["said"]["state"] == "delivered"
    if not answer["identity"] or not sent:
        click.get_current_context().exit(1)


@channel.command()
@click.argument("channel_id")
@click.argument("to")
@click.argument("text")
@click.option("--thread", default="", help="The thread to say it in.")
@as_json_option
@click.pass_obj
def send(here: Here, /, channel_id: str, to: str, text: str, **said: Any) -> None:
    """Say TEXT to a person, group or room on CHANNEL_ID; - reads standard input."""
    body = {"to": to, "text": _read(text), "thread": said["thread"]}
    told = here.connect().post(f"{_path(channel_id)}/test", body)["said"]
    click.echo(json.dumps(told, indent=2) if said["as_json"] else _fate(told))
    if told["state"] != "delivered":
        click.get_current_context().exit(1)


@channel.command()
@click.argument("channel_id")
@as_json_option
@click.pass_obj
def lost(here: Here, channel_id: str, *, as_json: bool) -> None:
    """List what did not arrive on CHANNEL_ID, or of which nobody knows."""
    answer = here.connect().get(f"{_path(channel_id)}/lost")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    elif not answer["lost"]:
        click.echo("nothing was lost")
    else:
        shown = ("said_at", "to", "state", "reason")
        rows = [tuple(each[name] for name in shown) for each in answer["lost"]]
        here.table(("said at", "to", "what became of it", "why"), rows)


@channel.command()
@click.argument("channel_id")
@as_json_option
@click.pass_obj
def reconnect(here: Here, channel_id: str, *, as_json: bool) -> None:
    """Connect CHANNEL_ID anew."""
    answer = here.connect().post(f"{_path(channel_id)}/reconnect", {})
    line = f"{channel_id} is connected anew; agenthost channel list says how it stands"
    click.echo(json.dumps(answer, indent=2) if as_json else line)


@channel.command()
@click.argument("channel_id")
@as_json_option
@click.pass_obj
def enable(here: Here, channel_id: str, *, as_json: bool) -> None:
    """Switch CHANNEL_ID on again."""
    _switch(here, channel_id, "enable", as_json=as_json)


@channel.command()
@click.argument("channel_id")
@as_json_option
@click.pass_obj
def disable(here: Here, channel_id: str, *, as_json: bool) -> None:
    """Switch CHANNEL_ID off, also for later starts."""
    _switch(here, channel_id, "disable", as_json=as_json)


@channel.command()
@click.argument("channel_id")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME",
    help="Ask for this one; without any, for those that are missing.",
)
@as_json_option
@click.pass_obj
def setup(
    here: Here, channel_id: str, secrets: tuple[str, ...], *, as_json: bool
) -> None:
    """Give CHANNEL_ID the secrets that it lacks; they go into the vault."""
    api = here.connect()
    rows = {each["name"]: each for each in api.get("/api/channels")["channels"]}
    row = rows.get(channel_id)
    if row is None or not row["available"]:
        raise click.UsageError(f"no plugin offers the channel {channel_id}")
    wanted = secrets or tuple(row["lacks"])
    if not wanted:
        click.echo(_next_step(row))
        return
    given = {name: click.prompt(name, hide_input=True, err=True) for name in wanted}
    answer = api.put(f"{_path(channel_id)}/secrets", {"secrets": given})
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    click.echo(f"kept in the vault: {', '.join(answer['kept'])}")
    click.echo(_next_step(row))


def _switch(here: Here, channel_id: str, way: str, *, as_json: bool) -> None:
    answer = here.connect().post(f"{_path(channel_id)}/{way}", {})
    stands = "on" if answer["enabled"] else "off"
    line = f"{channel_id} is {stands}; agenthost channel list says how it stands"
    click.echo(json.dumps(answer, indent=2) if as_json else line)


def _read(text: str) -> str:
    if text != "-":
        return text
    with click.open_file("-") as stream:
        return str(stream.read())


def _next_step(row: Any) -> str:
    name = row["name"]
    if row["enabled"]:
        return f"next: agenthost channel test {name}"
    return (
        f"next: write [channels.{name}] with agent and allow_from into config.toml "
        f"(docs/channels.md), then agenthost reload"
    )


def _tried(answer: Any) -> list[str]:
    lines = [
        f"we are {answer['identity']}"
        if answer["identity"]
        else f"the service did not say who we are: {answer['trouble']}"
    ]
    if not answer["connected"]:
        lines.append(f"not connected: {answer['trouble'] or 'not yet'}")
    if answer["said"] is not None:
        lines.append(_fate(answer["said"]))
    return lines


def _fate(said: Any) -> str:
    shown = said["message_id"] or said["reason"]
    return f"{said['state']}{f': {shown}' if shown else ''}"


def _path(channel_id: str) -> str:
    return f"/api/channels/{quote(channel_id, safe='')}"


def _list_pairings(here: Here, answer: Any, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    rows = [
        (each["code"], each["sender"], each["name"], each["expires_at"])
        for each in answer["pairings"]
    ]
    if not rows:
        click.echo("nobody asks to be let in")
        return
    here.table(("code", "sender", "calls itself", "until"), rows)


def _state(row: Any) -> str:
    if row["connected"]:
        return "connected"
    return "off" if not row["enabled"] else "not connected"
