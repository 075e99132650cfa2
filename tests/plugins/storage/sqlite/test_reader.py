"""What a caller may rely on when it reads."""

from __future__ import annotations

import sqlite3

import pytest
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import func, select

from .rows import BY_NAME, ITEMS, adding, names


async def test_a_row_is_read_by_name_and_by_position(store: SqliteStore) -> None:
    await store.write(adding("one"))
    row = await store.first(BY_NAME, {"name": "one"})
    assert row is not None
    assert (row["id"], row["name"]) == (row[0], row[1]) == (1, "one")
    assert list(row.keys()) == ["id", "name"]
    assert tuple(row) == (1, "one")
    assert len(row) == 2


async def test_the_first_of_no_rows_is_none(store: SqliteStore) -> None:
    assert await store.first(BY_NAME, {"name": "nobody"}) is None


async def test_a_statement_may_carry_its_own_values(store: SqliteStore) -> None:
    for name in ("a", "b", "c"):
        await store.write(adding(name))
    wanted = select(ITEMS.c.name).where(ITEMS.c.name.in_(["a", "c"])).limit(5)
    assert [row[0] for row in await store.read(wanted)] == ["a", "c"]
    count = await store.first(select(func.count().label("n")).select_from(ITEMS))
    assert count is not None
    assert count["n"] == 3


async def test_a_wrong_parameter_is_named(store: SqliteStore) -> None:
    with pytest.raises(TypeError, match="nmae"):
        await store.read(BY_NAME, {"nmae": "one"})
    with pytest.raises(TypeError, match="needs the parameter 'name'"):
        await store.read(BY_NAME)


async def test_statements_without_number_do_not_pile_up(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_storage.sqlite.reader.COMPILED_LIMIT", 4)
    for number in range(20):
        await store.read(select(ITEMS.c.id).where(ITEMS.c.id == number))
    assert len(store._reader._compiled) == 4


async def test_a_reader_cannot_write(store: SqliteStore) -> None:
    connection = store._reader._connections[0]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await connection.execute("DELETE FROM items")
    assert await names(store) == []


async def test_a_probe_reads(store: SqliteStore) -> None:
    assert await store.probe()
    assert store.healthy
