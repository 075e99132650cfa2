"""Several nodes on one database, and a database that goes away for a while."""

from __future__ import annotations

import asyncio
import socket
from functools import partial

import psycopg
import pytest
from agenthost import (
    AgentHostError,
    ConfigError,
    InvalidInput,
    Store,
    Unavailable,
)
from agenthost_cluster import count_tables, drop_tables, open_store
from agenthost_cluster.connect import WRITE_LOCK
from agenthost_cluster.store import PostgresStore
from sqlalchemy import Connection, cast, literal, select
from sqlalchemy import Integer as Whole
from sqlalchemy.exc import IntegrityError

from .conftest import OpenNode
from .rows import ALL, SCHEMA, SUM, THINGS, add, count_up, put
from .server import Server

pytestmark = pytest.mark.conformance

PATIENCE = 30.0
SECRET = "hunter2"


async def until_healthy(store: Store) -> None:
    async with asyncio.timeout(PATIENCE):
        while not (await store.probe() and store.healthy):  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


def name_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def end_connections(server: Server, url: str) -> None:
    server.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{name_of(url)}'"
    )


# Several at once.


async def test_what_one_node_reads_before_it_writes_no_other_changes(
    node: OpenNode,
) -> None:
    nodes = [await node([SCHEMA]) for _ in range(3)]
    await add(nodes[0], name="counter")
    counted = await asyncio.gather(
        *(each.write(count_up) for _ in range(20) for each in nodes)
    )
    assert sorted(counted) == [*range(1, 61)]


async def test_a_node_sees_what_another_has_committed(node: OpenNode) -> None:
    first, second = await node([SCHEMA]), await node([SCHEMA])
    await add(first, name="a")
    assert [row["name"] for row in await second.read(ALL)] == ["a"]


async def test_a_group_with_a_fault_leaves_the_others_whole(node: OpenNode) -> None:
    store = await node([SCHEMA])
    await add(store, id=1)
    writes = [
        store.write(partial(put, id=number)) for number in (2, 1, 3, 1, 4, 10**30)
    ]
    ends = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(end, IntegrityError) for end in ends[:5]] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert isinstance(ends[5], Exception)
    assert [row["id"] for row in await store.read(ALL)] == [1, 2, 3, 4]
    assert store.healthy


@pytest.mark.faults
async def test_a_writer_that_stands_still_is_ended_and_the_others_go_on(
    server: Server, database: str, node: OpenNode
) -> None:
    store = await node([SCHEMA])
    with psycopg.connect(server.url(name_of(database))) as still:
        still.execute("SET idle_in_transaction_session_timeout = 3000")
        still.execute(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})".encode())
        async with asyncio.timeout(30):
            await add(store, name="goes on")
        with pytest.raises(psycopg.Error):
            still.execute("SELECT 1")
        still.close()


async def test_every_writer_is_ended_by_the_database_when_it_stands_still(
    node: OpenNode,
) -> None:
    def setting(connection: Connection) -> tuple[str, ...]:
        names = ("idle_in_transaction_session_timeout", "synchronous_commit")
        return tuple(
            str(connection.exec_driver_sql(f"SHOW {name}").scalar_one())
            for name in names
        )

    store = await node([SCHEMA])
    assert await store.write(setting) == ("3s", "on")


# Away for a while.


async def test_connections_that_were_ended_are_opened_again(
    server: Server, database: str, node: OpenNode
) -> None:
    store = await node([SCHEMA])
    await add(store, name="before")
    end_connections(server, database)
    assert [row["name"] for row in await store.read(ALL)] == ["before"]
    with pytest.raises(Unavailable):
        await add(store, name="lost")
    assert not store.healthy
    await until_healthy(store)
    await add(store, name="after")
    assert [row["name"] for row in await store.read(ALL)] == ["before", "after"]


async def test_a_write_that_meets_a_busy_database_is_unavailable_and_repeatable(
    node: OpenNode,
) -> None:
    def slow(connection: Connection) -> None:
        put(connection, name="slow")
        connection.exec_driver_sql("SET LOCAL statement_timeout = 1")
        connection.exec_driver_sql("SELECT pg_sleep(5)")

    store = await node([SCHEMA])
    with pytest.raises(Unavailable, match="busy"):
        await store.write(slow)
    await add(store, name="next")
    assert [row["name"] for row in await store.read(ALL)] == ["next"]


async def test_a_read_ends_in_time_and_changes_nothing(node: OpenNode) -> None:
    store = await node([SCHEMA])
    (row,) = await store.read("SHOW statement_timeout")
    assert row[0] == "30s"
    await store.read("SELECT set_config('statement_timeout', '1', false)")
    with pytest.raises(Unavailable, match="busy"):
        await store.read("SELECT pg_sleep(20)")
    with pytest.raises(Unavailable, match="no writes"):
        await store.read("DELETE FROM things")


async def test_parameters_that_do_not_fit_are_told(node: OpenNode) -> None:
    store = await node([SCHEMA])
    for parameters in ({}, {"name": "a", "other": "b"}):
        with pytest.raises(TypeError, match="fit"):
            await store.read("SELECT 1 FROM things WHERE name = :name", parameters)


async def test_a_reader_that_leaves_holds_up_nobody(node: OpenNode) -> None:
    store = await node([SCHEMA])
    leaving = [
        asyncio.ensure_future(store.read("SELECT pg_sleep(20)")) for _ in range(8)
    ]
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    async with asyncio.timeout(PATIENCE / 3):
        await asyncio.gather(*leaving, return_exceptions=True)
        assert await store.read(ALL) == []


# Values.


async def test_values_are_kept_as_sqlite_keeps_them(node: OpenNode) -> None:
    store = await node([SCHEMA])
    moment = 1_767_225_600.123456
    await add(store, number=2**62, moment=moment, content=b"\0\xff")
    await add(store, number=True, moment=3)
    first, second = await store.read(ALL)
    assert (first["number"], first["moment"]) == (2**62, moment)
    assert (first["content"], second["number"]) == (b"\0\xff", 1)
    (total,) = await store.read(SUM)
    assert (total["sum"], type(total["sum"])) == (2**62 + 1, int)


async def test_a_number_is_cut_off_not_rounded(node: OpenNode) -> None:
    store = await node([SCHEMA])
    await add(store, moment=2.9)
    (row,) = await store.read(select(cast(THINGS.c.moment, Whole)))
    assert row[0] == 2
    (row,) = await store.read(select(cast(literal("7"), Whole)))
    assert row[0] == 7


async def test_words_are_sorted_byte_by_byte_in_every_database(node: OpenNode) -> None:
    store = await node([SCHEMA])
    (row,) = await store.read(
        "SELECT collation_name FROM information_schema.columns "
        "WHERE table_name = 'things' AND column_name = 'name'"
    )
    assert row[0] == "C"


async def test_rows_are_numbered_with_64_bits(node: OpenNode) -> None:
    store = await node([SCHEMA])
    (row,) = await store.read(
        "SELECT data_type FROM information_schema.columns "
        "WHERE table_name = 'things' AND column_name = 'id'"
    )
    assert row[0] == "bigint"


async def test_a_nul_is_refused_and_told(node: OpenNode) -> None:
    store = await node([SCHEMA])
    with pytest.raises(InvalidInput, match="NUL"):
        await add(store, name="a\0b")
    with pytest.raises(InvalidInput, match="NUL"):
        await store.read("SELECT id FROM things WHERE name = :name", {"name": "a\0b"})
    assert store.healthy


async def test_values_are_never_part_of_a_text(node: OpenNode) -> None:
    store = await node([SCHEMA])
    put_ = 'INSERT INTO things (name) VALUES (:name) RETURNING name AS "the name"'
    for name in ("%s %(name)s %", "'; DROP TABLE things; --", ":name"):
        (row,) = await store.change(put_, {"name": name})
        assert [row["the name"], row[0], *row] == [name] * 3
    found = await store.read("SELECT name FROM things WHERE name LIKE '\\%%'")
    assert len(found) == 1


# Opening.


async def test_an_address_that_is_none_is_told_without_its_words() -> None:
    with pytest.raises(ConfigError, match=r"storage\.url") as told:
        await open_store(f"postgresql://u:{SECRET}@h:port/db?no=1", [])
    assert SECRET not in told.value.message


async def test_a_database_that_is_not_there_is_told_without_its_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"postgresql://u:{SECRET}@127.0.0.1:{taken.getsockname()[1]}/db"
        with pytest.raises(Unavailable) as told:
            await open_store(url, [])
    assert SECRET not in told.value.message


async def test_a_database_of_another_name_is_not_made(server: Server) -> None:
    with pytest.raises(AgentHostError):
        await open_store(server.url("nobody"), [])


# What is left of a plugin.


async def test_tables_of_a_plugin_that_is_gone_can_be_dropped(database: str) -> None:
    store = await PostgresStore.open(database, [SCHEMA])
    await add(store, name="a")
    await store.close()

    def owned(name: str) -> bool:
        return name.startswith("things")

    assert await asyncio.to_thread(count_tables, database, owned) == {"things": 1}
    await asyncio.to_thread(drop_tables, database, owned)
    assert await asyncio.to_thread(count_tables, database, owned) == {}
    again = await PostgresStore.open(database, [SCHEMA])
    assert await again.read(ALL) == []
    await again.close()


async def test_a_table_that_another_refers_to_is_not_dropped(
    server: Server, database: str
) -> None:
    store = await PostgresStore.open(database, [SCHEMA])
    await store.close()
    refers = "CREATE TABLE others (thing bigint REFERENCES things (id))"
    server.run(refers, name_of(database))
    with pytest.raises(AgentHostError, match="others"):
        await asyncio.to_thread(
            drop_tables, database, lambda name: name.startswith("things")
        )
