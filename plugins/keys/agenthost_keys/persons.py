"""``/api/persons``: the people whom keys and others stand for."""

from __future__ import annotations

import re
from uuid import UUID

from agenthost import Answer, Call, Conflict, InvalidInput, Person, RouteGroup

from .keyring import keyring_of
from .shapes import (
    ChangePerson,
    CreatePerson,
    Gone,
    LinkItem,
    LinkList,
    PersonItem,
    PersonList,
)

ADMIN = "persons:admin"
LINK = "/api/persons/<person_id>/links/<kind>/<path:external>"
KIND = re.compile(r"[a-z][a-z0-9._-]{0,63}", re.ASCII)
EXTERNAL_LENGTH = 256

routes = RouteGroup("keys.persons")


@routes.get("/api/persons", scope=ADMIN, answer=PersonList)
async def list_persons(call: Call) -> Answer:
    """List the people, by name."""
    rows = [_item(person) for person in await call.host.persons.list()]
    return {"persons": rows, "total": len(rows)}


@routes.post(
    "/api/persons", scope=ADMIN, body=CreatePerson, answer=PersonItem, status=201
)
async def add_person(call: Call, body: CreatePerson) -> Answer:
    """Add a person; keys can stand for it from now on."""
    return _item(await call.host.persons.add(body.name, body.role))


@routes.get("/api/persons/<person_id>", scope=ADMIN, answer=PersonItem)
async def get_person(call: Call, person_id: UUID) -> Answer:
    """Show a person."""
    return _item(await call.host.persons.get(str(person_id)))


@routes.patch(
    "/api/persons/<person_id>", scope=ADMIN, body=ChangePerson, answer=PersonItem
)
async def change_person(call: Call, person_id: UUID, body: ChangePerson) -> Answer:
    """Rename a person; keys and links stay theirs, and what is left out stays."""
    persons = call.host.persons
    now = await persons.get(str(person_id))
    changed = await persons.change(now.id, body.name or now.name, body.role or now.role)
    return _item(changed)


@routes.delete("/api/persons/<person_id>", scope=ADMIN, answer=Gone)
async def delete_person(call: Call, person_id: UUID) -> Answer:
    """Forget a person for whom no key stands; what it used stays counted."""
    if names := keyring_of(call.host).keys_of(str(person_id)):
        raise Conflict(
            f"the keys {', '.join(sorted(names)[:5])} stand for this person; "
            "revoke them first"
        )
    await call.host.persons.delete(str(person_id))
    return {"status": "deleted", "id": str(person_id)}


@routes.get("/api/persons/<person_id>/links", scope=ADMIN, answer=LinkList)
async def list_links(call: Call, person_id: UUID) -> Answer:
    """List what a person comes with, apart from keys."""
    persons = call.host.persons
    links = await persons.links((await persons.get(str(person_id))).id)
    rows = [{"kind": kind, "external": external} for kind, external in links]
    return {"links": rows, "total": len(rows)}


@routes.put(LINK, scope=ADMIN, answer=LinkItem)
async def link_person(call: Call, person_id: UUID, kind: str, external: str) -> Answer:
    """Say who is behind it from now on; whoever was linked to it before is no more."""
    _check_link(kind, external)
    await call.host.persons.link(kind, external, str(person_id))
    return {"kind": kind, "external": external}


@routes.delete(LINK, scope=ADMIN, answer=LinkItem)
async def unlink_person(
    call: Call, person_id: UUID, kind: str, external: str
) -> Answer:
    """Say that this person is behind it no more."""
    _check_link(kind, external)
    await call.host.persons.unlink(kind, external, str(person_id))
    return {"kind": kind, "external": external}


def _check_link(kind: str, external: str) -> None:
    if not KIND.fullmatch(kind):
        raise InvalidInput("kind", "must be a word of at most 64 letters, digits, ._-")
    if len(external) > EXTERNAL_LENGTH or not external.isprintable():
        raise InvalidInput(
            "external", f"must be printable, of at most {EXTERNAL_LENGTH} characters"
        )


def _item(person: Person) -> PersonItem:
    return {"id": person.id, "name": person.name, "role": person.role}
