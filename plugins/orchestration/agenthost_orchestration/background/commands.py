"""``agenthost occasions``: what was due and what came of it, over the API."""

from __future__ import annotations

import json
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import click

STATES = (
    "due",
    "running",
    "waiting",
    "done",
    "failed",
    "missed",
    "refused",
    "cancelled",
)


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object) -> Any:
        """Send JSON and read the answer's."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""


_as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print what the API answers."
)


@click.group()
def occasions() -> None:
    """See what triggers and schedules have had done."""


@occasions.command("list")
@click.option("--source", type=click.Choice(["trigger", "schedule"]), help="Its kind.")
@click.option("--id", "source_id", help="The trigger or schedule.")
@click.option("--state", type=click.Choice(STATES), help="Where they stand.")
@click.option("--limit", type=click.IntRange(1, 500), default=100, show_default=True)
@_as_json
@click.pass_obj
def list_occasions(here: Here, /, *, as_json: bool, **wanted: str | int | None) -> None:
    """List occasions, newest first."""
    query = urlencode({name: each for name, each in wanted.items() if each is not None})
    answer = here.connect().get(f"/api/occasions?{query}")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    for item in answer["occasions"]:
        click.echo(_line(item))


@occasions.command()
@click.argument("occasion")
@_as_json
@click.pass_obj
def show(here: Here, occasion: str, *, as_json: bool) -> None:
    """Show OCCASION with what came of it."""
    told = here.connect().get(f"/api/occasions/{quote(occasion, safe='')}")
    click.echo(json.dumps(told, indent=2) if as_json else "\n".join(_lines(told)))


@occasions.command()
@click.argument("occasion")
@_as_json
@click.pass_obj
def cancel(here: Here, occasion: str, *, as_json: bool) -> None:
    """End OCCASION; what is being done is stopped."""
    path = f"/api/occasions/{quote(occasion, safe='')}/cancel"
    told = here.connect().post(path, {})
    click.echo(json.dumps(told, indent=2) if as_json else _line(told))


def _plain(text: str) -> str:
    """What agents and people outside wrote draws nothing on a terminal."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\ufffd" for char in text
    )


def _line(item: dict[str, Any]) -> str:
    whose = f"{item['source']} {item['source_id']}"
    why = f"  {item['detail']}" if item["detail"] else ""
    line = f"{item['at']}  {item['id']}  {whose}  {item['state']}{why}"
    return " ".join(_plain(line).split("\n"))


def _lines(told: dict[str, Any]) -> list[str]:
    facts = [_line(told), f"cost: {told['cost_usd']:g} USD"]
    if told["delivered"]:
        facts.append(_plain(f"delivered: {told['delivered']}"))
    return [*facts, "", _plain(told["text"])] if told["text"] else facts
