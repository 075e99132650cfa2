"""The contract of people holds for those in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from agenthost import Conflict, NotFound, Person
from agenthost.testing import PersonsContract
from agenthost.testing.ports.memory_records.persons import MemoryPersons

from ..finding import names_in, names_of
from .broken import InMemory, finds_broken


class TestPersonsInMemory(InMemory, PersonsContract):
    """They keep every promise."""


class LosesRoles(MemoryPersons):
    async def add(self, name: str, role: str) -> Person:
        return await super().add(name, "")


class MakesUpPeople(MemoryPersons):
    async def get(self, person_id: str) -> Person:
        return self._rows.persons.get(person_id, Person(person_id, "?", ""))


class InTheOrderTheyCame(MemoryPersons):
    async def list(self) -> Sequence[Person]:
        return [*self._rows.persons.values()]


class CapitalsFirst(MemoryPersons):
    async def list(self) -> Sequence[Person]:
        return sorted(self._rows.persons.values(), key=lambda each: each.name)


class CaseMatters(MemoryPersons):
    def _put(self, person: Person) -> Person:
        if person.name in {each.name for each in self._rows.persons.values()}:
            raise Conflict("taken")
        self._rows.persons[person.id] = person
        return person


class LooksTooEarly(MemoryPersons):
    async def add(self, name: str, role: str) -> Person:
        known = [each.name.casefold() for each in self._rows.persons.values()]
        await asyncio.sleep(0)
        if name.casefold() in known:
            raise Conflict("taken")
        person = Person(f"{len(self._rows.persons)}", name, role)
        self._rows.persons[person.id] = person
        return person


class RenamesToAnother(MemoryPersons):
    async def change(self, person_id: str, name: str, role: str) -> Person:
        del self._rows.persons[person_id]
        return await self.add(name, role)


class RenamesToATakenName(MemoryPersons):
    async def change(self, person_id: str, name: str, role: str) -> Person:
        self._rows.persons[person_id] = Person(person_id, name, role)
        return self._rows.persons[person_id]


class RefusesOnesOwnName(MemoryPersons):
    async def change(self, person_id: str, name: str, role: str) -> Person:
        if name.casefold() == (await self.get(person_id)).name.casefold():
            raise Conflict("taken")
        return await super().change(person_id, name, role)


class LinksWhateverTheKind(MemoryPersons):
    async def link(self, kind: str, external: str, person_id: str) -> None:
        await super().link("any", external, person_id)

    async def find(self, kind: str, external: str) -> Person | None:
        return await super().find("any", external)


class LinksToNobody(MemoryPersons):
    async def link(self, kind: str, external: str, person_id: str) -> None:
        self._rows.links[kind, external] = person_id


class LinksOnce(MemoryPersons):
    async def link(self, kind: str, external: str, person_id: str) -> None:
        await self.get(person_id)
        self._rows.links.setdefault((kind, external), person_id)


class LeavesThePerson(MemoryPersons):
    async def delete(self, person_id: str) -> None:
        person = await self.get(person_id)
        await super().delete(person_id)
        self._rows.persons[person_id] = person


class LeavesLinks(MemoryPersons):
    async def delete(self, person_id: str) -> None:
        before = dict(self._rows.links)
        await super().delete(person_id)
        self._rows.links.update(before)

    async def find(self, kind: str, external: str) -> Person | None:
        who = self._rows.links.get((kind, external))
        return None if who is None else Person(who, "gone", "")


class TakesEveryLink(MemoryPersons):
    async def delete(self, person_id: str) -> None:
        await super().delete(person_id)
        self._rows.links.clear()


class RaisesForNobody(MemoryPersons):
    async def find(self, kind: str, external: str) -> Person | None:
        found = await super().find(kind, external)
        if found is None:
            raise NotFound("person", external)
        return found


HERE = TestPersonsInMemory()
BREACHES: tuple[tuple[type[MemoryPersons], Any], ...] = (
    (LosesRoles, HERE.test_a_person_is_there_for_the_next_process),
    (MakesUpPeople, HERE.test_nobody_is_found_where_nobody_is),
    (RaisesForNobody, HERE.test_nobody_is_found_where_nobody_is),
    (InTheOrderTheyCame, HERE.test_people_are_listed_by_name),
    (CapitalsFirst, HERE.test_people_are_listed_by_name),
    (CaseMatters, HERE.test_a_name_is_taken_once),
    (LooksTooEarly, HERE.test_a_name_is_taken_once),
    (RenamesToAnother, HERE.test_a_rename_keeps_the_id_and_the_links),
    (RenamesToATakenName, HERE.test_a_rename_keeps_the_id_and_the_links),
    (RefusesOnesOwnName, HERE.test_a_rename_keeps_the_id_and_the_links),
    (LinksWhateverTheKind, HERE.test_a_link_names_one_person_and_may_move),
    (LinksToNobody, HERE.test_a_link_names_one_person_and_may_move),
    (LinksOnce, HERE.test_a_link_names_one_person_and_may_move),
    (LeavesThePerson, HERE.test_a_deleted_person_is_gone_with_all_links),
    (LeavesLinks, HERE.test_a_deleted_person_is_gone_with_all_links),
    (TakesEveryLink, HERE.test_a_deleted_person_is_gone_with_all_links),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_people_are_found(broken: type[MemoryPersons], test: Any) -> None:
    await finds_broken(broken, test, names=("ada", "Ada"))


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(PersonsContract)
