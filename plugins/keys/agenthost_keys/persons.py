"""``/api/persons``: the people whom keys and others stand for."""

from __future__ import annotations

from uuid import UUID

from agenthost import Answer, Call, Conflict, Person, RouteGroup

from .keyring import keyring_of
from .shapes import ChangePerson, CreatePerson, Gone, PersonItem, PersonList

ADMIN = "persons:admin"

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


@routes.put(
    "/api/persons/<person_id>", scope=ADMIN, body=ChangePerson, answer=PersonItem
)
async def change_person(call: Call, person_id: UUID, body: ChangePerson) -> Answer:
    """Rename a person; its keys stay its own."""
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


def _item(person: Person) -> PersonItem:
    return {"id": person.id, "name": person.name, "role": person.role}
