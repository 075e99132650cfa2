"""What SQLAlchemy wraps: SQLite's own connection. Nothing here imports SQLAlchemy."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

COMPILED_LIMIT = 512
"""Statements that are remembered with their text."""


def driver(connection: Connection) -> sqlite3.Connection:
    """Give the sqlite3 connection underneath."""
    inner = connection.connection.driver_connection
    if not isinstance(inner, sqlite3.Connection):
        raise TypeError("the store's connection is not SQLite's")
    return inner
