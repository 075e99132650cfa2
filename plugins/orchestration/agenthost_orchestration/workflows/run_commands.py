"""``agenthost workflow run``, ``runs`` and ``cancel``."""

from __future__ import annotations

import json
from typing import Any, Protocol
from urllib.parse import quote
from uuid import UUID

import click

RUN_SECONDS = 7_200.0
"""Longer than a run may take, unless somebody allows more."""


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object = None, *, timeout: float = ...) -> Any:
        """Send JSON and read the answer's."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""


_as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print what the API answers."
)


@click.command()
@click.argument("name")
@click.option("--input", "given", default="", help="What {{input}} is at first.")
@click.option("--no-wait", is_flag=True, help="Print the run's id and leave.")
@click.option("--max-cost", type=float, help="US dollars that it may spend in all.")
@_as_json
@click.pass_obj
def run(here: Here, /, name: str, given: str, *, as_json: bool, **how: Any) -> None:
    """Run the workflow NAME (or its id) and print its output."""
    api = here.connect()
    body: dict[str, Any] = {"input": given}
    if how["max_cost"] is not None:
        body["max_cost_usd"] = how["max_cost"]
    path = f"/api/workflows/{_id_of(api, name)}/run"
    query = "?wait=false" if how["no_wait"] else ""
    told = api.post(f"{path}{query}", body, timeout=RUN_SECONDS)
    if as_json:
        click.echo(json.dumps(told, indent=2))
    elif told["status"] == "completed":
        click.echo(told["output"])
    else:
        click.echo(f"run {told['run_id']} is {told['status']}")


@click.command()
@click.argument("name")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
@_as_json
@click.pass_obj
def runs(here: Here, name: str, limit: int, *, as_json: bool) -> None:
    """List the runs of the workflow NAME (or its id), newest first."""
    api = here.connect()
    found = api.get(f"/api/workflows/{_id_of(api, name)}/runs?limit={limit}")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        click.echo(
            f"{each['id']}  {each['state']:<9}  {each['steps_completed']:>3} steps  "
            f"{each['cost_usd']:.6f} USD  {each['created_at']}"
        )


@click.command()
@click.argument("run_id")
@_as_json
@click.pass_obj
def cancel(here: Here, run_id: str, *, as_json: bool) -> None:
    """End the run RUN_ID, with the turns that run for it."""
    path = f"/api/workflows/runs/{quote(run_id, safe='')}/cancel"
    told = here.connect().post(path, {})
    if as_json:
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(f"run {told['id']} is {told['state'].lower()}")


RUN_COMMANDS = (run, runs, cancel)


def _id_of(api: Api, name: str) -> str:
    """Find a workflow by its id, or by a name that one alone has."""
    try:
        return str(UUID(name))
    except ValueError:
        pass
    found = [each["id"] for each in api.get("/api/workflows") if each["name"] == name]
    if len(found) != 1:
        several = f"{len(found)} workflows are" if found else "no workflow is"
        raise click.ClickException(
            f"{several} called {name!r}; name one by its id: agenthost workflow list"
        )
    return str(found[0])
