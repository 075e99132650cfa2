"""``agenthost audit`` and ``agenthost security``."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import click


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def get(self, path: str) -> Any:
        """Ask for JSON."""


class Here(Protocol):
    """What the command line gives to commands."""

    home: Path

    def connect(self) -> Api:
        """Find the running daemon."""


as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what the API answers."
)


@click.group()
def audit() -> None:
    """Read the audit trail, verify it, check receipts."""


@audit.command()
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@click.option("--before", type=int, help="Show what is older than this entry.")
@click.option("--event-type", help="Only of this kind.")
@click.option("--agent-id", help="Only of this agent.")
@click.option("--actor", help="Only what this principal caused.")
@click.option("--since", help="Not before this time (ISO 8601).")
@click.option("--until", help="Not after this time (ISO 8601).")
@as_json_option
@click.pass_obj
def recent(here: Here, /, *, as_json: bool, **asked: Any) -> None:
    """Show the newest entries, newest first."""
    query = urlencode({name: value for name, value in asked.items() if value})
    answer = here.connect().get(f"/api/audit/recent?{query}")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    for entry in answer["entries"]:
        who = f"{entry['event_type']:<22} {entry['actor']:<24} {entry['agent_id']}"
        click.echo(f"{entry['id']:>8} {entry['timestamp']} {who} {entry['details']}")
    click.echo(f"{answer['total']} entries in all", err=True)


@audit.command()
@click.option(
    "--offline",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read this folder of data instead of asking the daemon.",
)
@click.option("--key", help="With --offline: the public key that signed the heads.")
@as_json_option
@click.pass_obj
def verify(here: Here, offline: Path | None, key: str | None, *, as_json: bool) -> None:
    """Walk the whole trail; the command fails when it is broken."""
    if offline is None:
        answer = here.connect().get("/api/audit/verify")
    else:
        answer = _walked(offline, key)
    _tell(answer, as_json=as_json)


def _walked(folder: Path, key: str | None) -> dict[str, Any]:
    from .checking import Broken
    from .offline import check_folder

    try:
        walk = check_folder(folder.absolute(), key)
    except Broken as broken:
        return {"status": "broken", "break_at": broken.break_at, "error": broken.reason}
    except (OSError, sqlite3.Error) as error:
        raise click.ClickException(str(error)) from error
    told = {"chain_length": walk.seen, "first_entry": walk.first_at}
    return {"status": "valid", **told, "last_entry": walk.last_at}


def _tell(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    elif answer["status"] == "valid":
        click.echo(f"valid: {answer['chain_length']} entries")
    else:
        click.echo(f"broken at entry {answer['break_at']}: {answer['error']}")
    if answer["status"] != "valid":
        sys.exit(1)


@audit.command("verify-receipt")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--key", help="The public key of the daemon that gave it.")
def verify_receipt(file: Any, key: str | None) -> None:
    """Check the receipt in FILE; no daemon is asked."""
    from .offline import Refused, check_receipt

    try:
        receipt = json.load(file)
        receipt = receipt.get("receipt", receipt)
        public = key or str(receipt["head"]["key"])
        statement = check_receipt(receipt, public)
    except Refused as refused:
        raise click.ClickException(f"refused: {refused}") from refused
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise click.ClickException("refused: this is no receipt") from error
    click.echo(json.dumps(statement, indent=2))
    if key is None:
        told = f"signed with {public}; give --key to say whose key it must be"
        click.echo(told, err=True)


@audit.command()
@click.pass_obj
def key(here: Here) -> None:
    """Print the public key that heads and receipts are signed with."""
    from agenthost import ConfigError

    from .signing import public_in

    try:
        public = public_in(here.home / "audit.key")
    except ConfigError as error:
        raise click.ClickException(error.message) from error
    if public is None:
        raise click.ClickException("there is none yet; start the daemon once")
    click.echo(public)


@click.group()
def security() -> None:
    """Show and prove the security systems."""


@security.command("status")
@as_json_option
@click.pass_obj
def status(here: Here, *, as_json: bool) -> None:
    """List the systems; each has just proved itself, or is not active."""
    _listed(here.connect(), as_json=as_json)


@security.command("verify")
@click.pass_obj
def verify_all(here: Here) -> None:
    """Prove every system and walk the audit trail; fails unless all is well."""
    api = here.connect()
    answer = _listed(api, as_json=False)
    trail = api.get("/api/audit/verify")
    _tell(trail, as_json=False)
    if not answer["all_active"]:
        raise click.ClickException("not every security system is active")


def _listed(api: Api, *, as_json: bool) -> dict[str, Any]:
    answer: dict[str, Any] = api.get("/api/security")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return answer
    for name, state in sorted(answer["security_systems"].items()):
        reason = answer["reasons"].get(name, "")
        click.echo(f"{name:<34} {state:<9} {reason}".rstrip())
    return answer
