"""Have a question of an agent answered at the terminal."""

from __future__ import annotations

import json
from typing import Any

import click

from .client import Client
from .errors import CommandError
from .tables import plain, printable

TYPES = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}


def ask_person(client: Client, approval_id: str) -> bool:
    """Show a question and take the answer; Enter is a no, Ctrl-D leaves it open.

    Somebody else may answer meanwhile: what they said stands, and is told.

    Returns:
        Whether it is answered, by whomever.
    """
    path = f"/api/approvals/{approval_id}"
    detail = client.get(path)
    if detail["state"] == "pending":
        _show(detail)
    while detail["state"] == "pending":
        try:
            _answer(client, path, detail)
        except EOFError:
            click.echo(
                f"\nleft open until {detail['deadline']}; answer it with: "
                f"agenthost approvals answer {approval_id} yes|no"
            )
            return False
        except CommandError as error:
            error.show()
        detail = client.get(path)
    by = detail["answered_by"]
    outcome = f"{detail['state']} by {plain(by)}" if by else detail["state"]
    click.echo(click.style(f"[{outcome}]", dim=True))
    return True


def _show(detail: dict[str, Any]) -> None:
    click.echo(click.style(f"? {printable(detail['question'])}", bold=True))
    if detail["tool"]:
        click.echo(f"  tool      {plain(detail['tool'])}")
    for name, value in detail["arguments"].items():
        shown = value if isinstance(value, str) else json.dumps(value)
        first, *rest = printable(shown).splitlines() or [""]
        click.echo(f"  {plain(name):<9} {first}")
        for line in rest:
            click.echo(f"  {'':<9} {line}")
    if detail["url"]:
        click.echo(f"  visit     {plain(detail['url'])}")
    click.echo(f"  deadline  {detail['deadline']}, which is a no")


def _answer(client: Client, path: str, detail: dict[str, Any]) -> None:
    digest = {"digest": detail["digest"]}
    if input("  allow it? [y/N] ").strip().lower() in {"y", "yes"}:
        client.post(f"{path}/approve", {"values": _values(detail), **digest})
        return
    reason = input("  why not, for the agent? ").strip()
    client.post(f"{path}/deny", {"reason": reason, **digest})


def _values(detail: dict[str, Any]) -> dict[str, Any]:
    if choices := detail["choices"]:
        return {"choice": input(f"  which of {', '.join(choices)}? ").strip()}
    schema = detail["schema"] or {}
    values: dict[str, Any] = {}
    for name, rules in schema.get("properties", {}).items():
        kind = rules["type"]
        hint = f" ({TYPES[kind]})" if kind in TYPES else ""
        said = input(f"  {plain(rules.get('title', name))}{hint}: ").strip()
        if said or name in schema.get("required", ()):
            values[name] = said if kind == "string" else _read(name, said)
    return values


def _read(name: str, said: str) -> Any:
    try:
        return json.loads(said.lower())
    except ValueError:
        raise CommandError(f"{name}: {said!r} is no value of its kind") from None
