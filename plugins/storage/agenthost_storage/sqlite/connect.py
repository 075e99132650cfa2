"""How a connection that writes is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from .driver import driver

if TYPE_CHECKING:
    from sqlalchemy import Connection

BUSY_TIMEOUT = 5.0
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA journal_size_limit = 67108864",
)


def raw(path: Path) -> sqlite3.Connection:
    """Open the file itself; transactions begin only where we say so."""
    connection = sqlite3.connect(
        path, BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def connect(path: Path, database: sqlite3.Connection | None = None) -> Connection:
    """Open a SQLAlchemy connection whose transactions are BEGIN IMMEDIATE.

    A deferred transaction that reads before it writes would fail with "locked"
    without waiting when somebody wrote in between.

    Args:
        path: The file.
        database: What ``raw`` has opened already, if so.
    """
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    from .compiled import QuickConnection

    engine = create_engine(
        "sqlite://", creator=lambda: database or raw(path), poolclass=NullPool
    )
    event.listen(engine, "begin", begin_immediate)
    connection = QuickConnection(engine)
    enforce_foreign_keys(connection, on=True)
    return connection


def begin_immediate(connection: Connection) -> None:
    """Take the write lock when the transaction begins."""
    driver(connection).execute("BEGIN IMMEDIATE")


def enforce_foreign_keys(connection: Connection, *, on: bool) -> None:
    """Switch the check of foreign keys; SQLite ignores this inside a transaction."""
    driver(connection).execute(f"PRAGMA foreign_keys = {'ON' if on else 'OFF'}")
