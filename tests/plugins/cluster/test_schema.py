"""Tables on PostgreSQL: made once, brought up to date once, by one node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost import ConfigError, PluginError, SchemaFailed, SchemaSpec
from agenthost_cluster.store import PostgresStore
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text

from .conftest import OpenNode
from .rows import ALL, SCHEMA, THINGS, add

pytestmark = pytest.mark.conformance

NAMES = (
    "SELECT column_name FROM information_schema.columns "
    "WHERE table_name = 'things' ORDER BY column_name"
)


STALLED = "idle_in_transaction_session_timeout"


def colour(op: Any) -> None:
    """Add a column, and look at the table as a step may."""
    op.add_column("things", Column("colour", Text, server_default="red"))


def slow(op: Any) -> None:
    """Tell how long a step may think between two statements."""
    shown = op.get_bind().exec_driver_sql(f"SHOW {STALLED}").scalar_one()
    op.execute(f"UPDATE things SET name = '{shown}'")


def break_(op: Any) -> None:
    """Change something and fail."""
    op.drop_column("things", "name")
    raise ZeroDivisionError


def later(*steps: Any) -> SchemaSpec:
    metadata = MetaData()
    table = THINGS.to_metadata(metadata)
    table.append_column(Column("colour", Text, server_default="red"))
    return SchemaSpec("things", metadata, steps)


async def columns(store: PostgresStore) -> list[str]:
    return [row[0] for row in await store.read(NAMES)]


async def test_nodes_that_start_at_once_make_each_table_once(node: OpenNode) -> None:
    nodes = await asyncio.gather(*(node([SCHEMA]) for _ in range(4)))
    for each in nodes:
        await add(each, name="a")
    assert len(await nodes[0].read(ALL)) == 4


async def test_nodes_that_start_at_once_run_each_step_once(node: OpenNode) -> None:
    await add(await node([SCHEMA]), name="a")
    nodes = await asyncio.gather(*(node([later(colour)]) for _ in range(4)))
    (row,) = await nodes[0].read("SELECT colour FROM things")
    assert row["colour"] == "red"
    (row,) = await nodes[1].read("SELECT version FROM schema_versions")
    assert row["version"] == 1


async def test_a_step_may_take_longer_to_think_than_a_write(node: OpenNode) -> None:
    await add(await node([SCHEMA]), name="a")
    store = await node([later(colour, slow)])
    (row,) = await store.read("SELECT name FROM things")
    assert row["name"] == "30s"

    def of_a_write(connection: Connection) -> str:
        return str(connection.exec_driver_sql(f"SHOW {STALLED}").scalar_one())

    assert await store.write(of_a_write) == "3s"


async def test_a_database_that_was_brought_up_is_as_a_new_one(
    node: OpenNode, server: Any
) -> None:
    await node([SCHEMA])
    brought_up = await columns(await node([later(colour)]))
    new = await PostgresStore.open(server.database(), [later(colour)])
    assert await columns(new) == brought_up
    await new.close()


async def test_a_step_that_fails_leaves_the_database_as_it_was(node: OpenNode) -> None:
    first = await node([SCHEMA])
    before = await columns(first)
    with pytest.raises(SchemaFailed, match=r"step 2 \(break_\) failed"):
        await node([later(colour, break_)])
    assert await columns(first) == before
    await add(first, name="goes on")


async def test_a_database_of_a_newer_version_is_refused(node: OpenNode) -> None:
    await node([later(colour)])
    with pytest.raises(ConfigError, match="knows version 0"):
        await node([SCHEMA])


async def test_two_plugins_with_one_table_or_name_are_refused(node: OpenNode) -> None:
    with pytest.raises(PluginError, match="two plugins"):
        await node([SCHEMA, SCHEMA])
    with pytest.raises(SchemaFailed, match="belongs to"):
        await node([SCHEMA, SchemaSpec("others", SCHEMA.metadata)])


async def test_tables_that_refer_to_each_other_are_made_in_order(
    node: OpenNode,
) -> None:
    from agenthost_jobs import register_schema

    store = await node([register_schema()])
    assert await store.read("SELECT * FROM step") == []


async def test_the_tables_of_every_plugin_of_ours_are_made(node: OpenNode) -> None:
    from agenthost_approvals import register_schema as approvals
    from agenthost_jobs import register_schema as jobs
    from agenthost_keys import register_schema as keys
    from agenthost_records import register_schema as records

    metadata = MetaData()
    Table("extra_things", metadata, Column("id", Integer, primary_key=True))
    found: list[SchemaSpec] = [SchemaSpec("extra", metadata), jobs(), *records()]
    found += [approvals(), keys()]
    store = await node(found)
    rows = await store.read("SELECT name, version FROM schema_versions")
    newest = {spec.name: len(spec.steps) for spec in found}
    assert {row["name"]: row["version"] for row in rows} == newest
