"""The people behind principals, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from ....errors import Conflict, NotFound
from ....ports.persons import Person
from .rows import Rows


class MemoryPersons:
    """People, and what each is known by outside."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def add(self, name: str, role: str) -> Person:
        """Add a person; Conflict when the name is taken."""
        return self._put(Person(str(uuid4()), name, role))

    async def get(self, person_id: str) -> Person:
        """Read a person, or raise NotFound."""
        if person_id not in self._rows.persons:
            raise NotFound("person", person_id)
        return self._rows.persons[person_id]

    async def list(self) -> Sequence[Person]:
        """All of them, by name."""
        people = self._rows.persons.values()
        return sorted(people, key=lambda each: each.name.casefold())

    async def change(self, person_id: str, name: str, role: str) -> Person:
        """Rename a person; NotFound, or Conflict when the name is taken."""
        await self.get(person_id)
        return self._put(Person(person_id, name, role))

    async def delete(self, person_id: str) -> None:
        """Forget a person and all links to it, or raise NotFound."""
        await self.get(person_id)
        del self._rows.persons[person_id]
        for at in [at for at, who in self._rows.links.items() if who == person_id]:
            del self._rows.links[at]

    async def link(self, kind: str, external: str, person_id: str) -> None:
        """Say who is behind it from now on; NotFound when there is no such person."""
        await self.get(person_id)
        self._rows.links[kind, external] = person_id

    async def unlink(self, kind: str, external: str, person_id: str) -> None:
        """Say that this person is behind it no more; NotFound when they were not."""
        if self._rows.links.get((kind, external)) != person_id:
            raise NotFound("link", f"{kind}:{external}")
        del self._rows.links[kind, external]

    async def links(self, person_id: str) -> Sequence[tuple[str, str]]:
        """What a person comes with: kind and external, in order; none of an unknown."""
        return sorted(at for at, who in self._rows.links.items() if who == person_id)

    async def find(self, kind: str, external: str) -> Person | None:
        """Tell who is behind it, None when nobody said."""
        return self._rows.persons.get(self._rows.links.get((kind, external), ""))

    def _put(self, person: Person) -> Person:
        for other in self._rows.persons.values():
            same = other.name.casefold() == person.name.casefold()
            if same and other.id != person.id:
                raise Conflict(f"a person named {person.name!r} exists already")
        self._rows.persons[person.id] = person
        return person
