"""``agenthost persons``: the people behind keys and links, over the API."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import click

from .commands import Api, Here, as_json_option, id_of


@click.group()
def persons() -> None:
    """Keep who is behind keys, and what else people come with."""


@persons.command("list")
@as_json_option
@click.pass_obj
def list_persons(here: Here, *, as_json: bool) -> None:
    """List the people."""
    answer = here.connect().get("/api/persons")
    rows = [f"{each['name']:<24} {_about(each)}" for each in answer["persons"]]
    _tell(answer, rows, as_json=as_json)


@persons.command()
@click.argument("name")
@click.option("--role", help="A word of your own; it grants nothing.")
@as_json_option
@click.pass_obj
def add(here: Here, name: str, role: str | None, *, as_json: bool) -> None:
    """Add the person NAME."""
    body = {"name": name, **({"role": role} if role else {})}
    answer = here.connect().post("/api/persons", body)
    _tell(answer, [f"added {answer['name']}  {answer['id']}"], as_json=as_json)


@persons.command()
@click.argument("person")
@as_json_option
@click.pass_obj
def show(here: Here, person: str, *, as_json: bool) -> None:
    """Show PERSON (a name or an id) and what they come with."""
    api, path = _found(here, person)
    answer = {**api.get(path), **api.get(f"{path}/links")}
    links = [f"  {each['kind']} {each['external']}" for each in answer["links"]]
    _tell(answer, [f"{answer['name']}  {_about(answer)}", *links], as_json=as_json)


@persons.command()
@click.argument("person")
@click.option("--name", help="What they are called from now on.")
@click.option("--role", help="A word of your own; it grants nothing.")
@as_json_option
@click.pass_obj
def change(here: Here, /, person: str, *, as_json: bool, **changes: Any) -> None:
    """Rename PERSON (a name or an id), or give them another role."""
    given = {field: value for field, value in changes.items() if value is not None}
    if not given:
        raise click.UsageError("name what is to change: --name or --role")
    api, path = _found(here, person)
    answer = api.patch(path, given)
    _tell(answer, [f"{answer['name']}  {_about(answer)}"], as_json=as_json)


@persons.command()
@click.argument("person")
@as_json_option
@click.pass_obj
def delete(here: Here, person: str, *, as_json: bool) -> None:
    """Forget PERSON (a name or an id) with all links; their keys must be gone."""
    api, path = _found(here, person)
    _tell(api.delete(path), [f"deleted {person}"], as_json=as_json)


@persons.command()
@click.argument("person")
@click.argument("kind")
@click.argument("external")
@as_json_option
@click.pass_obj
def link(here: Here, person: str, kind: str, external: str, *, as_json: bool) -> None:
    """Say that PERSON is who comes as EXTERNAL of a KIND, such as telegram 42."""
    api, path = _found(here, person)
    answer = api.put(_link(path, kind, external))
    _tell(answer, [f"{kind} {external} is {person}"], as_json=as_json)


@persons.command()
@click.argument("person")
@click.argument("kind")
@click.argument("external")
@as_json_option
@click.pass_obj
def unlink(here: Here, person: str, kind: str, external: str, *, as_json: bool) -> None:
    """Say that PERSON is not who comes as EXTERNAL of a KIND any more."""
    api, path = _found(here, person)
    answer = api.delete(_link(path, kind, external))
    _tell(answer, [f"{kind} {external} is {person} no more"], as_json=as_json)


def _found(here: Here, person: str) -> tuple[Api, str]:
    api = here.connect()
    known = id_of("person", person, api.get("/api/persons")["persons"])
    return api, f"/api/persons/{known}"


def _link(path: str, kind: str, external: str) -> str:
    return f"{path}/links/{quote(kind, safe='')}/{quote(external)}"


def _about(person: dict[str, Any]) -> str:
    return f"{person['role']:<12} {person['id']}"


def _tell(answer: Any, lines: list[str], *, as_json: bool) -> None:
    click.echo(json.dumps(answer, indent=2) if as_json else "\n".join(lines))
