"""What every backend of RECORDS promises of people, as tests to inherit."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from ....errors import Conflict, NotFound
from ....ports.persons import Person
from ....ports.records import Records
from .scenes import OpenRecords, RecordsFixtures


class PersonsContract(RecordsFixtures):
    """The people behind principals keep every promise of the port.

    Example:
        ::

            class TestPersons(PersonsContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenRecords:
                    return partial(open_records, store, clock)
    """

    async def test_a_person_is_there_for_the_next_process(
        self, records: Records, opened: OpenRecords
    ) -> None:
        """With the name and the role it was added with, and its links."""
        ada = await records.persons.add("Ada Ключ", "a role\nof two lines")
        assert (ada.name, ada.role) == ("Ada Ключ", "a role\nof two lines")
        await records.persons.link("telegram", "42", ada.id)
        found = opened().persons
        assert await found.get(ada.id) == ada
        assert await found.find("telegram", "42") == ada

    async def test_nobody_is_found_where_nobody_is(self, records: Records) -> None:
        """NotFound, to whoever asks for somebody or would change or delete them."""
        asks = (
            partial(records.persons.get, "nobody"),
            partial(records.persons.change, "nobody", "name", ""),
            partial(records.persons.delete, "nobody"),
            partial(records.persons.link, "telegram", "42", "nobody"),
        )
        for ask in asks:
            with pytest.raises(NotFound):
                await ask()
        assert await records.persons.find("telegram", "42") is None
        assert [*await records.persons.list()] == []

    async def test_people_are_listed_by_name(self, records: Records) -> None:
        """In any case."""
        for name in ("Grace", "Ada", "barbara", "Émilie", "zoe"):
            await records.persons.add(name, "")
        names = [person.name for person in await records.persons.list()]
        assert names == sorted(names, key=str.casefold)
        assert len(names) == 5

    @pytest.mark.parametrize("names", [("ada", "Ada", "ADA"), ("Ägnes", "ägnes")])
    async def test_a_name_is_taken_once(
        self, records: Records, names: tuple[str, ...]
    ) -> None:
        """In any case, asked for at once; the others get Conflict."""
        adds = (records.persons.add(name, "") for name in names)
        async with asyncio.timeout(self.patience):
            added = await asyncio.gather(*adds, return_exceptions=True)
        assert sum(isinstance(each, Conflict) for each in added) == len(names) - 1
        assert [each for each in added if isinstance(each, Person)] == [
            *await records.persons.list()
        ]

    async def test_a_rename_keeps_the_id_and_the_links(self, records: Records) -> None:
        """To a name that is taken it is a Conflict; to one's own it is none."""
        ada = await records.persons.add("ada", "member")
        await records.persons.add("grace", "member")
        await records.persons.link("telegram", "42", ada.id)
        lady = await records.persons.change(ada.id, "Lady Ada", "owner")
        assert lady == Person(ada.id, "Lady Ada", "owner")
        with pytest.raises(Conflict):
            await records.persons.change(ada.id, "Grace", "owner")
        assert await records.persons.find("telegram", "42") == lady
        again = await records.persons.change(ada.id, "lady ada", "owner")
        assert await records.persons.get(ada.id) == again

    async def test_a_link_names_one_person_and_may_move(self, records: Records) -> None:
        """It is by the kind and by what the outside says, both."""
        ada = await records.persons.add("ada", "")
        grace = await records.persons.add("grace", "")
        await records.persons.link("telegram", "42", ada.id)
        await records.persons.link("slack", "42", grace.id)
        await records.persons.link("telegram", "43", grace.id)
        assert await records.persons.find("telegram", "42") == ada
        await records.persons.link("telegram", "42", grace.id)
        assert await records.persons.find("telegram", "42") == grace
        with pytest.raises(NotFound):
            await records.persons.link("telegram", "42", "nobody")
        assert await records.persons.find("telegram", "42") == grace

    async def test_a_deleted_person_is_gone_with_all_links(
        self, records: Records
    ) -> None:
        """Whoever gets the name later is somebody else; other people stay."""
        ada = await records.persons.add("ada", "")
        grace = await records.persons.add("grace", "")
        for external in ("42", "43"):
            await records.persons.link("telegram", external, ada.id)
        await records.persons.link("slack", "42", grace.id)
        await records.persons.delete(ada.id)
        again = await records.persons.add("ada", "")
        assert again.id != ada.id
        assert [*await records.persons.list()] == [again, grace]
        for external in ("42", "43"):
            assert await records.persons.find("telegram", external) is None
        assert await records.persons.find("slack", "42") == grace
