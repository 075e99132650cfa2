"""The people behind principals, and what each is known by outside."""

from __future__ import annotations

from collections.abc import Sequence
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

_ALL = select(persons)
_ONE = select(persons).where(persons.c.id == bindparam("id"))
_LINKED = (
    select(persons)
    .join(links, links.c.person_id == persons.c.id)
    .where(links.c.kind == bindparam("kind"), links.c.external == bindparam("external"))
)

_LINKS = (
    select(links.c.kind, links.c.external)
    .where(links.c.person_id == bindparam("person"))
    .order_by(links.c.kind, links.c.external)
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
        people = map(_person, await self._store.read(_ALL))
        return sorted(people, key=lambda each: each.name.casefold())

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

    async def unlink(self, kind: str, external: str, person_id: str) -> None:
        """Say that this person is behind it no more.

        Raises:
            NotFound: They were not.
        """
        row = {"kind": kind, "external": external, "person_id": person_id}
        await self._store.write(partial(_unlink, row=row))

    async def links(self, person_id: str) -> Sequence[tuple[str, str]]:
        """What a person comes with: kind and external, in order; none of an unknown."""
        rows = await self._store.read(_LINKS, {"person": person_id})
        return [(row["kind"], row["external"]) for row in rows]

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
    # People take two names that differ in case alone for one; SQLite's own lower()
    # knows ASCII alone.
    others = select(persons.c.name).where(persons.c.id != person.id)
    taken = {name.casefold() for name in connection.execute(others).scalars()}
    if person.name.casefold() in taken:
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


def _unlink(connection: Connection, row: dict[str, str]) -> None:
    own = [links.c[name] == value for name, value in row.items()]
    if not connection.execute(delete(links).where(*own)).rowcount:
        raise NotFound("link", f"{row['kind']}/{row['external']}")
