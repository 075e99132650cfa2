"""How connections are opened, and what holds on each of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import psycopg
from agenthost import ConfigError
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.pool import NullPool

from .dialect import Dialect
from .values import settle

CONNECT_SECONDS = 5
STALLED_MS = 3_000
"""Milliseconds after which PostgreSQL ends the transaction of one that stands still:
all nodes wait for a writer that was stopped in the middle of its work."""
PREPARING_MS = 30_000
"""The same for one that holds no lock yet, or makes its tables: what it does between
two statements is its own work, which takes long on a busy machine."""
WAIT_MS = 10_000
STATEMENT_MS = 30_000
WRITE_LOCK = 0x61676E74
"""The number of the lock that whoever writes holds; it is of this database alone."""

_BOTH = (
    f"SET statement_timeout = {STATEMENT_MS}; SET TIME ZONE 'UTC'; "
    "SET standard_conforming_strings = on"
)
WRITING = (
    f"{_BOTH}; SET synchronous_commit = on; SET lock_timeout = {WAIT_MS}; "
    f"SET idle_in_transaction_session_timeout = {PREPARING_MS}"
)
READING = f"{_BOTH}; SET default_transaction_read_only = on"
_LOCK = (
    f"SELECT set_config('idle_in_transaction_session_timeout', '{STALLED_MS}', true), "
    f"pg_advisory_xact_lock({WRITE_LOCK})"
)
PREPARING = f"SET LOCAL idle_in_transaction_session_timeout = {PREPARING_MS}"
_ALIVE: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "fallback_application_name": "agenthost",
}


def options_of(url: str) -> dict[str, Any]:
    """Read a URL; what it says itself counts more than what stands here.

    Raises:
        ConfigError: It is none that PostgreSQL takes.
    """
    try:
        return {**_ALIVE, **conninfo_to_dict(url), "client_encoding": "utf8"}
    except psycopg.Error as error:
        raise ConfigError(
            "storage.url: PostgreSQL does not take this address; write it as "
            "postgresql://user:password@host:5432/database"
        ) from error


def raw(options: dict[str, Any]) -> psycopg.Connection[Any]:
    """Open a connection that writes."""
    connection = psycopg.connect(**options, autocommit=True)
    try:
        connection.execute(WRITING)
        settle(connection)
        connection.autocommit = False
    except BaseException:
        connection.close()
        raise
    return connection


def engine_of(options: dict[str, Any]) -> Engine:
    """Make what opens SQLAlchemy connections whose transactions stand in a queue.

    Write functions read before they write, and rely on nobody's writing in between.
    That holds among all nodes: whoever begins waits for the one that has begun.
    """
    registry.register("postgresql.agenthost", Dialect.__module__, Dialect.__name__)
    engine = create_engine(
        "postgresql+agenthost://",
        creator=partial(raw, options),
        poolclass=NullPool,
        # Otherwise every start would ask for an extension of the server.
        use_native_hstore=False,
        hide_parameters=True,
    )
    event.listen(engine, "begin", take_turn)
    return engine


def take_turn(connection: Connection) -> None:
    """Wait until nobody else writes, when the transaction begins.

    From then on it may not stand still for long.
    """
    driver_of(connection).execute(_LOCK)


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Give psycopg's connection underneath."""
    inner = connection.connection.driver_connection
    if not isinstance(inner, psycopg.Connection):
        raise TypeError("the store's connection is not psycopg's")
    return inner


async def open_reading(options: dict[str, Any]) -> psycopg.AsyncConnection[Any]:
    """Open a connection that can read and nothing else, each read as of now."""
    connection = await psycopg.AsyncConnection.connect(**options, autocommit=True)
    try:
        await connection.execute(READING)
        settle(connection)
    except BaseException:
        await connection.close()
        raise
    return connection
