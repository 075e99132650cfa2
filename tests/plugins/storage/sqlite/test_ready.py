"""A database that needs nothing done is taken up as it is, without SQLAlchemy."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agenthost import ConfigError, SchemaFailed, SchemaSpec
from agenthost_storage.sqlite import SqliteStore, wal
from agenthost_storage.sqlite.ready import take_up
from sqlalchemy import Column, Integer, MetaData, Table

from .rows import METADATA, SCHEMA, adding, names

OPENED_AGAIN = """
import asyncio, sys
from pathlib import Path
from agenthost import SchemaSpec
from agenthost_storage.sqlite import SqliteStore

def metadata():
    raise AssertionError("nothing asks for the tables")

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]), [SchemaSpec("items", metadata)])
    found = [row["name"] for row in await store.read("SELECT name FROM items")]
    assert found == ["a"], found
    assert await store.probe()
    assert "sqlalchemy" not in sys.modules
    await store.close()

asyncio.run(main())
"""


async def made(path: Path, *schemas: SchemaSpec) -> None:
    store = await SqliteStore.open(path, schemas)
    await store.close()


def taken_up(path: Path, *schemas: SchemaSpec) -> bool:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return take_up(database, schemas)


def spec(name: str, table: str, *steps: Any) -> SchemaSpec:
    metadata = MetaData()
    Table(table, metadata, Column("id", Integer, primary_key=True))
    return SchemaSpec(name, metadata, steps)


def test_the_second_start_imports_no_sqlalchemy(path: Path) -> None:
    async def first() -> None:
        store = await SqliteStore.open(path, [SCHEMA])
        await store.write(adding("a"))
        await store.close()

    asyncio.run(first())
    subprocess.run([sys.executable, "-c", OPENED_AGAIN, str(path)], check=True)
    with closing(sqlite3.connect(path)) as database:
        closed = "SELECT value FROM store_marks WHERE name = 'closed_cleanly'"
        assert database.execute(closed).fetchall() == [(1,)]


async def test_what_was_taken_up_is_written_and_kept(path: Path) -> None:
    await made(path, SCHEMA)
    store = await SqliteStore.open(path, [SCHEMA])
    await store.write(adding("a"))
    assert await names(store) == ["a"]
    await store.close()
    assert taken_up(path, SCHEMA)


async def test_it_is_taken_up_once_as_long_as_nobody_closes_it(path: Path) -> None:
    await made(path, SCHEMA)
    assert taken_up(path, SCHEMA)
    assert not taken_up(path, SCHEMA)


@pytest.mark.parametrize(
    "schemas",
    [
        (SchemaSpec("items", METADATA, (print,)),),
        (SCHEMA, spec("more", "more")),
        (),
    ],
    ids=["a step more", "a schema more", "a schema less"],
)
async def test_other_schemas_are_looked_at(
    path: Path, schemas: tuple[SchemaSpec, ...]
) -> None:
    await made(path, SCHEMA)
    assert not taken_up(path, *schemas)


async def test_schemas_that_were_never_together_are_checked_for_one_table(
    path: Path,
) -> None:
    one, other = spec("one", "pots"), spec("other", "pots")
    await made(path, one)
    await made(path, other)
    with pytest.raises(SchemaFailed, match="'pots' belongs to 'one'"):
        await made(path, one, other)


@pytest.mark.parametrize("gone", ["store_marks", "schema_versions"])
async def test_a_table_that_is_gone_is_looked_at(path: Path, gone: str) -> None:
    await made(path, SCHEMA)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"DROP TABLE {gone}")
    assert not taken_up(path, SCHEMA)


async def test_a_version_that_was_changed_by_hand_is_looked_at(path: Path) -> None:
    await made(path, SCHEMA)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE schema_versions SET version = 7")
        database.commit()
    assert not taken_up(path, SCHEMA)
    with pytest.raises(ConfigError, match="holds version 7"):
        await made(path, SCHEMA)


async def test_its_log_is_emptied_also_when_nobody_writes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "LATEST", 0.02)
    await made(path, SCHEMA)
    store = await SqliteStore.open(path, [SCHEMA])
    log = path.with_name(f"{path.name}-wal")
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(log.stat)).st_size:
            await store.probe()
    await store.close()


async def test_a_file_that_went_before_the_first_write_is_told(path: Path) -> None:
    await made(path, SCHEMA)
    store = await SqliteStore.open(path, [SCHEMA])
    await asyncio.to_thread(path.rename, path.with_name("elsewhere.db"))
    with pytest.raises(Exception, match="deleted, moved or replaced"):
        await store.write(adding("a"))
    assert not store.healthy
    await store.close()
