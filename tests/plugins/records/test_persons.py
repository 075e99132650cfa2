"""The people behind principals are kept, renamed, linked and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agenthost import Conflict, NotFound, Person, Persons
from agenthost.testing import ManualClock
from agenthost_records import open_records, register_schema
from agenthost_storage.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", register_schema())
    yield store
    await store.close()


@pytest.fixture
def persons(store: SqliteStore) -> Persons:
    return open_records(store, ManualClock()).persons


async def test_a_person_is_read_back_and_listed_by_name(persons: Persons) -> None:
    grace = await persons.add("grace", "owner")
    ada = await persons.add("Ada", "member")
    assert await persons.get(grace.id) == Person(grace.id, "grace", "owner")
    assert await persons.list() == [ada, grace]


async def test_two_people_of_one_name_are_refused_in_any_case(persons: Persons) -> None:
    added = await asyncio.gather(
        *(persons.add(name, "member") for name in ("ada", "Ada", "ADA")),
        return_exceptions=True,
    )
    assert [isinstance(each, Conflict) for each in added].count(True) == 2
    assert len(await persons.list()) == 1


async def test_a_rename_keeps_the_id_and_the_links(persons: Persons) -> None:
    ada = await persons.add("ada", "member")
    grace = await persons.add("grace", "member")
    await persons.link("telegram", "42", ada.id)
    lady = await persons.change(ada.id, "Lady Ada", "owner")
    assert lady.id == ada.id
    assert await persons.find("telegram", "42") == lady
    with pytest.raises(Conflict, match="'GRACE' exists already"):
        await persons.change(ada.id, "GRACE", "owner")
    assert (await persons.change(grace.id, "Grace", "member")).name == "Grace"


async def test_a_link_names_one_person_and_may_move(persons: Persons) -> None:
    ada, grace = await persons.add("ada", ""), await persons.add("grace", "")
    assert await persons.find("telegram", "42") is None
    await persons.link("telegram", "42", ada.id)
    await persons.link("slack", "42", grace.id)
    assert await persons.find("telegram", "42") == ada
    await persons.link("telegram", "42", grace.id)
    assert await persons.find("telegram", "42") == grace


async def test_a_deleted_person_is_gone_with_its_links(persons: Persons) -> None:
    ada = await persons.add("ada", "")
    await persons.link("telegram", "42", ada.id)
    await persons.delete(ada.id)
    assert await persons.find("telegram", "42") is None
    for refused in (
        persons.get(ada.id),
        persons.change(ada.id, "x", ""),
        persons.delete(ada.id),
        persons.link("telegram", "42", ada.id),
    ):
        with pytest.raises(NotFound):
            await refused
    again = await persons.add("ada", "")
    assert await persons.find("telegram", "42") is None
    assert again.id != ada.id
