"""``agenthost approvals``: what waits for people, and their answers, over the API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import quote

import click
from agenthost import InvalidInput

from .spoken import line_of, lines_of, row_of, typed_values

MOST = 500


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

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows below a head."""


_as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print what the API answers."
)


@click.group()
def approvals() -> None:
    """Answer for agents that ask before a tool call."""


@approvals.command("list")
@click.option("--all", "every", is_flag=True, help="Those that have ended too.")
@_as_json
@click.pass_obj
def list_approvals(here: Here, *, every: bool, as_json: bool) -> None:
    """List what waits for an answer."""
    answer = here.connect().get(_listing(every=every))
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    heads = ("id", "state", "agent", "wants", "deadline", "question")
    here.table(heads, [row_of(item) for item in answer["approvals"]])


@approvals.command()
@click.argument("approval")
@_as_json
@click.pass_obj
def show(here: Here, approval: str, *, as_json: bool) -> None:
    """Show APPROVAL (its id, or how it begins) with all that it asks."""
    detail = _detail(here.connect(), approval)
    click.echo(json.dumps(detail, indent=2) if as_json else "\n".join(lines_of(detail)))


@approvals.command()
@click.argument("approval")
@click.argument("verdict", type=click.Choice(["yes", "no"]))
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="A value that is asked for, with a yes; several add up.",
)
@click.option(
    "--for",
    "remember",
    type=click.Choice(["once", "session", "pattern"]),
    default="once",
    show_default=True,
    help="What a yes holds for, of the same tool and question.",
)
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="NAME=TEXT",
    help="An argument with * for anything, for --for pattern; name each.",
)
@click.option("--reason", default="", help="Why not; the model is told.")
@_as_json
@click.pass_obj
def answer(
    here: Here, /, approval: str, verdict: str, *, as_json: bool, **said: Any
) -> None:
    """Say yes or no to APPROVAL (its id, or how it begins); the turn goes on."""
    api = here.connect()
    detail = _detail(api, approval)
    path = f"/api/approvals/{detail['id']}"
    if verdict == "yes":
        if said["reason"]:
            raise click.UsageError("--reason goes with a no")
        body: dict[str, Any] = {
            "values": _values(detail, said["values"]),
            "remember": said["remember"],
            "pattern": _pattern(said["patterns"]),
        }
        told = api.post(f"{path}/approve", {**body, "digest": detail["digest"]})
    else:
        if said["values"]:
            raise click.UsageError("--value goes with a yes")
        if said["remember"] != "once" or said["patterns"]:
            raise click.UsageError("--for and --pattern go with a yes")
        body = {"reason": said["reason"], "digest": detail["digest"]}
        told = api.post(f"{path}/deny", body)
    click.echo(json.dumps(told, indent=2) if as_json else line_of(told))


@approvals.command()
@click.argument("approval")
@_as_json
@click.pass_obj
def revoke(here: Here, approval: str, *, as_json: bool) -> None:
    """Have a yes for a session or a pattern hold no more."""
    api = here.connect()
    detail = _detail(api, approval)
    told = api.post(f"/api/approvals/{detail['id']}/revoke", {})
    click.echo(json.dumps(told, indent=2) if as_json else f"revoked {detail['id']}")


def _pattern(texts: tuple[str, ...]) -> dict[str, str]:
    pattern = {}
    for text in texts:
        name, equals, said = text.partition("=")
        if not equals:
            raise click.UsageError(f"--pattern {text!r} must be written as NAME=TEXT")
        pattern[name] = said
    return pattern


def _values(detail: dict[str, Any], texts: tuple[str, ...]) -> dict[str, Any]:
    try:
        return typed_values(detail["schema"], texts)
    except InvalidInput as error:
        raise click.ClickException(error.message) from error


def _detail(api: Api, wanted: str) -> Any:
    """Read an approval by its id, or by how the id of one alone begins."""
    if len(wanted) < 36:
        found = api.get(_listing(every=True))["approvals"]
        ids = [row["id"] for row in found if row["id"].startswith(wanted.lower())]
        if not wanted or len(ids) != 1:
            several = f"{len(ids)} approvals begin" if ids else "no approval begins"
            raise click.ClickException(
                f"{several} with {wanted!r}; see: agenthost approvals list --all"
            )
        wanted = ids[0]
    return api.get(f"/api/approvals/{quote(wanted, safe='')}")


def _listing(*, every: bool) -> str:
    return f"/api/approvals?limit={MOST}{'' if every else '&state=pending'}"
