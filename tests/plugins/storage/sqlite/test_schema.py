"""Making, upgrading and refusing databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agenthost import ConfigError, PluginError, SchemaSpec
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import Column, ForeignKey, Index, Integer, MetaData, Table, Text, text

from .rows import SCHEMA, adding, names
from .upgrades import assert_steps_reach_newest


def add_colour(op: Any) -> None:
    op.add_column("items", Column("colour", Text))


def index_colour(op: Any) -> None:
    op.create_index("items_colour", "items", ["colour"])


def break_down(op: Any) -> None:
    op.drop_table("items")
    raise RuntimeError("half way")


def spec(*steps: Callable[[Any], None]) -> SchemaSpec:
    return SchemaSpec("items", SCHEMA.metadata, steps)


def permissions(path: Path) -> int:
    return path.stat().st_mode & 0o777


def scribble(path: Path, place: int, data: bytes) -> None:
    path.touch()
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


async def made(path: Path, *schemas: SchemaSpec) -> None:
    store = await SqliteStore.open(path, schemas)
    await store.close()


def content(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


async def test_a_fresh_database_is_at_the_newest_version(path: Path) -> None:
    await made(path, spec(add_colour, index_colour))
    assert content(path, "SELECT name, version FROM schema_versions") == [("items", 2)]
    assert permissions(path) == 0o600
    assert not list(path.parent.glob("*.bak-*"))


async def test_missing_steps_run_in_order_and_keep_the_rows(path: Path) -> None:
    store = await SqliteStore.open(path, [spec()])
    await store.write(adding("kept"))
    await store.close()
    await made(path, spec(add_colour, index_colour))
    assert content(path, "SELECT name, colour FROM items") == [("kept", None)]
    assert content(path, "SELECT version FROM schema_versions") == [(2,)]


async def test_the_steps_lead_to_the_schema_as_it_stands() -> None:
    newest = MetaData()
    Table(
        "items",
        newest,
        Column("id", Integer, primary_key=True),
        Column("name", Text, nullable=False, unique=True),
        Column("colour", Text),
        Index("items_colour", "colour"),
    )
    steps = (add_colour, index_colour)
    assert_steps_reach_newest(SchemaSpec("items", newest, steps), SCHEMA.metadata)
    with pytest.raises(AssertionError):
        assert_steps_reach_newest(
            SchemaSpec("items", newest, steps[:1]), SCHEMA.metadata
        )


async def test_a_step_that_raises_changes_nothing_and_is_named(path: Path) -> None:
    store = await SqliteStore.open(path, [spec()])
    await store.write(adding("kept"))
    await store.close()
    before = content(path, "SELECT name, sql FROM sqlite_master ORDER BY name")
    with pytest.raises(PluginError, match=r"'items': step 2 \(break_down\).*half way"):
        await SqliteStore.open(path, [spec(add_colour, break_down)])
    after = content(path, "SELECT name, sql FROM sqlite_master ORDER BY name")
    assert after == before
    assert content(path, "SELECT name FROM items") == [("kept",)]
    assert content(path, "SELECT version FROM schema_versions") == [(0,)]


async def test_a_newer_database_is_refused_naming_both_versions(path: Path) -> None:
    await made(path, spec(add_colour, index_colour))
    with pytest.raises(ConfigError, match=r"version 2 .*'items'.* version 1"):
        await SqliteStore.open(path, [spec(add_colour)])
    await made(path, spec(add_colour, index_colour))


async def test_an_upgrade_leaves_a_copy_of_the_old_database(path: Path) -> None:
    store = await SqliteStore.open(path, [spec()])
    await store.write(adding("old"))
    await store.close()
    await made(path, spec(add_colour))
    copy = path.with_name("agenthost.db.bak-0")
    assert permissions(copy) == 0o600
    assert content(copy, "SELECT name FROM items") == [("old",)]
    copy.replace(path)
    await made(path, spec())


async def test_the_newest_three_copies_are_kept(path: Path) -> None:
    def nothing(op: Any) -> None:
        op.execute(text("SELECT 1"))

    for count in range(6):
        await made(path, spec(*[nothing] * count))
    copies = sorted(copy.name for copy in path.parent.glob("*.bak-*"))
    assert copies == [f"agenthost.db.bak-{number}" for number in (2, 3, 4)]


async def test_a_schema_that_leaves_keeps_its_tables(path: Path) -> None:
    store = await SqliteStore.open(path, [SCHEMA])
    await store.write(adding("kept"))
    await store.close()
    await made(path)
    store = await SqliteStore.open(path, [SCHEMA])
    assert await names(store) == ["kept"]
    await store.close()


async def test_rebuilding_a_table_spares_the_rows_that_refer_to_it(path: Path) -> None:
    metadata = MetaData()
    parent = Table("parent", metadata, Column("id", Integer, primary_key=True))
    child = Table(
        "child",
        metadata,
        Column("parent", ForeignKey("parent.id", ondelete="CASCADE"), primary_key=True),
    )

    def rebuild(op: Any) -> None:
        with op.batch_alter_table("parent", recreate="always") as batch:
            batch.add_column(Column("note", Text))

    store = await SqliteStore.open(path, [SchemaSpec("family", metadata)])
    await store.write(lambda c: c.execute(parent.insert(), {"id": 1}))
    await store.write(lambda c: c.execute(child.insert(), {"parent": 1}))
    await store.close()
    await made(path, SchemaSpec("family", metadata, (rebuild,)))
    assert content(path, "SELECT parent FROM child") == [(1,)]


async def test_a_step_may_not_leave_rows_that_refer_to_nothing(path: Path) -> None:
    metadata = MetaData()
    parent = Table("parent", metadata, Column("id", Integer, primary_key=True))
    child = Table("child", metadata, Column("parent", ForeignKey("parent.id")))

    def orphan(op: Any) -> None:
        op.execute(parent.delete())

    store = await SqliteStore.open(path, [SchemaSpec("family", metadata)])
    await store.write(lambda c: c.execute(parent.insert(), {"id": 1}))
    await store.write(lambda c: c.execute(child.insert(), {"parent": 1}))
    await store.close()
    with pytest.raises(PluginError, match="'child' that refer to nothing"):
        await SqliteStore.open(path, [SchemaSpec("family", metadata, (orphan,))])
    assert content(path, "SELECT id FROM parent") == [(1,)]


async def test_two_plugins_cannot_claim_one_name_or_table(path: Path) -> None:
    with pytest.raises(PluginError, match="two plugins register the schema 'items'"):
        await SqliteStore.open(path, [SCHEMA, SCHEMA])
    with pytest.raises(PluginError, match="'items' belongs to 'items'"):
        await SqliteStore.open(path, [SCHEMA, SchemaSpec("other", SCHEMA.metadata)])


async def test_foreign_keys_hold_and_deleted_bytes_are_wiped(
    store: SqliteStore,
) -> None:
    def pragmas(connection: Any) -> list[int]:
        wanted = ("foreign_keys", "secure_delete", "synchronous")
        return [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in wanted
        ]

    assert await store.write(pragmas) == [1, 1, 2]


async def test_a_file_that_is_no_database_is_refused_with_the_remedy(
    path: Path,
) -> None:
    scribble(path, 0, b"this is not a database" * 1000)
    scribble(path.with_name("agenthost.db.bak-3"), 0, b"")
    scribble(path.with_name("agenthost.db.bak-12"), 0, b"")
    with pytest.raises(ConfigError, match=r"damaged.*copy agenthost.db.bak-12 over it"):
        await SqliteStore.open(path, [SCHEMA])


async def test_damage_is_looked_for_after_a_crash(path: Path) -> None:
    store = await SqliteStore.open(path, [SCHEMA])
    for number in range(200):
        await store.write(adding(f"{number:0200}"))
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE store_marks SET value = 0")
        connection.commit()
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'items'"
        ).fetchone()[0]
    scribble(path, (root - 1) * size + 8, b"\xff" * 200)
    with pytest.raises(ConfigError, match="damaged"):
        await SqliteStore.open(path, [SCHEMA])


async def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="cannot be opened"):
        await SqliteStore.open(tmp_path / "nowhere" / "agenthost.db", [SCHEMA])
