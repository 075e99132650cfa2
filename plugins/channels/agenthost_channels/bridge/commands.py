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
    api, path = here.connect(), f"/api/channels/{quote(channel_id, safe='')}/pairings"
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
