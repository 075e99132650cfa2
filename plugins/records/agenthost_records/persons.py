"""The people behind principals, and what each is known by outside."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from agenthost import Clock, Conflict, NotFound, Person, Row, Store
from sqlalchemy import (
    REAL,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

metadata = MetaData()

persons = Table(
    "persons",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
)

links = Table(
    "person_links",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("external", Text, primary_key=True),
    Column("person_id", Text, nullable=False, index=True),
)

_ALL = select(persons).order_by(func.lower(persons.c.name))
_ONE = select(persons).where(persons.c.id == bindparam("id"))
_LINKED = (
    select(persons)
    .join(links, links.c.person_id == persons.c.id)
    .where(links.c.kind == bindparam("kind"), links.c.external == bindparam("external"))
)


class PersonTable:
    """The people of one daemon."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def add(self, name: str, role: str) -> Person:
        """Add a person.

        Raises:
            Conflict: The name is taken.
        """
        person = Person(str(uuid4()), name, role)
        await self._store.write(partial(_add, person=person, now=self._clock.time()))
        return person

    async def get(self, person_id: str) -> Person:
        """Read a person.

        Raises:
            NotFound: There is none.
        """
        row = await self._store.first(_ONE, {"id": person_id})
        if row is None:
            raise NotFound("person", person_id)
        return _person(row)

    async def list(self) -> list[Person]:
        """All of them, by name."""
        return [_person(row) for row in await self._store.read(_ALL)]

    async def change(self, person_id: str, name: str, role: str) -> Person:
        """Rename a person.

        Raises:
            NotFound: There is none.
            Conflict: The name is taken.
        """
        person = Person(person_id, name, role)
        await self._store.write(partial(_change, person=person))
        return person

    async def delete(self, person_id: str) -> None:
        """Forget a person and all links to it.

        Raises:
            NotFound: There is none.
        """
        await self._store.write(partial(_delete, person_id=person_id))

    async def link(self, kind: str, external: str, person_id: str) -> None:
        """Say who is behind it from now on.

        Raises:
            NotFound: There is no such person.
        """
        row = {"kind": kind, "external": external, "person_id": person_id}
        await self._store.write(partial(_link, row=row))

    async def find(self, kind: str, external: str) -> Person | None:
        """Tell who is behind it, None when nobody said."""
        row = await self._store.first(_LINKED, {"kind": kind, "external": external})
        return None if row is None else _person(row)


def _person(row: Row) -> Person:
    return Person(row["id"], row["name"], row["role"])


def _add(connection: Connection, person: Person, now: float) -> None:
    _check_name(connection, person)
    row = {"id": person.id, "name": person.name, "role": person.role}
    connection.execute(insert(persons).values(**row, created_at=now))


def _change(connection: Connection, person: Person) -> None:
    _check_name(connection, person)
    changed = connection.execute(
        update(persons)
        .where(persons.c.id == person.id)
        .values(name=person.name, role=person.role)
    )
    if not changed.rowcount:
        raise NotFound("person", person.id)


def _check_name(connection: Connection, person: Person) -> None:
    # People take two names that differ in case alone for one.
    same = select(persons.c.id).where(
        func.lower(persons.c.name) == func.lower(person.name),
        persons.c.id != person.id,
    )
    if connection.execute(same).first():
        raise Conflict(f"a person named {person.name!r} exists already")


def _delete(connection: Connection, person_id: str) -> None:
    gone = connection.execute(delete(persons).where(persons.c.id == person_id))
    if not gone.rowcount:
        raise NotFound("person", person_id)
    connection.execute(delete(links).where(links.c.person_id == person_id))


def _link(connection: Connection, row: dict[str, str]) -> None:
    known = select(persons.c.id).where(persons.c.id == row["person_id"])
    if not connection.execute(known).first():
        raise NotFound("person", row["person_id"])
    earlier = links.c.kind == row["kind"], links.c.external == row["external"]
    connection.execute(delete(links).where(*earlier))
    connection.execute(insert(links).values(**row))
