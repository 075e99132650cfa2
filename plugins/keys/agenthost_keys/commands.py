"""``agenthost keys``: make, list and revoke named keys of the running daemon."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, get_args

import click

from .scopes import Scope


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""

    def post(self, path: str, body: object) -> Any:
        """Send JSON and read the answer's."""

    def put(self, path: str) -> Any:
        """Have something be so and read the answer's JSON."""

    def patch(self, path: str, body: object) -> Any:
        """Send what is to change and read the answer's JSON."""

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
def keys() -> None:
    """Make, list and revoke named keys of the API."""


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(get_args(Scope)),
    help="What it may do; several add up.",
)
@click.option(
    "--days",
    type=click.FloatRange(0, 36_500, min_open=True),
    help="How long it holds; for good, when this is left out.",
)
@click.option("--units", type=click.IntRange(1), help="Units it may use in a minute.")
@click.option("--person", help="Name or id of whom it stands for.")
@as_json_option
@click.pass_obj
def create(
    here: Here,
    /,
    name: str,
    scopes: tuple[str, ...],
    *,
    as_json: bool,
    **limits: Any,
) -> None:
    """Make the key NAME and print it: it is shown this once."""
    api = here.connect()
    body = {"name": name, "scopes": scopes, "units_per_minute": limits["units"]}
    if limits["days"] is not None:
        end = datetime.now(UTC) + timedelta(days=limits["days"])
        body["expires_at"] = end.isoformat()
    if limits["person"] is not None:
        people = api.get("/api/persons")["persons"]
        body["person"] = id_of("person", limits["person"], people)
    answer = api.post("/api/keys", body)
    click.echo(json.dumps(answer, indent=2) if as_json else answer["key"])
    click.echo("keep it now: it is not shown again", err=True)


@keys.command("list")
@as_json_option
@click.pass_obj
def list_keys(here: Here, *, as_json: bool) -> None:
    """List the named keys, without their secrets."""
    answer = here.connect().get("/api/keys")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    heads = ("name", "status", "scopes", "expires", "used", "id")
    here.table(heads, [_row(key) for key in answer["keys"]])


def _row(key: dict[str, Any]) -> tuple[str, ...]:
    expires, used = key["expires_at"] or "never", key["last_used_at"] or "never"
    scopes = ",".join(key["scopes"])
    return key["name"], key["status"], scopes, expires, used, key["id"]


@keys.command()
@click.argument("key")
@as_json_option
@click.pass_obj
def revoke(here: Here, key: str, *, as_json: bool) -> None:
    """Revoke KEY (a name or an id): what is open for it ends at once."""
    api = here.connect()
    rows = api.get("/api/keys")["keys"]
    living = [row for row in rows if row["status"] != "revoked"]
    answer = api.delete(f"/api/keys/{id_of('key', key, living)}")
    click.echo(json.dumps(answer, indent=2) if as_json else f"revoked {key}")


def id_of(kind: str, wanted: str, rows: list[dict[str, Any]]) -> str:
    """Find the id of a row by its name or id."""
    for row in rows:
        if wanted in (row["name"], row["id"]):
            return str(row["id"])
    known = ", ".join(sorted(row["name"] for row in rows)) or "none"
    raise click.ClickException(f"no {kind} is named {wanted!r}; there are: {known}")
