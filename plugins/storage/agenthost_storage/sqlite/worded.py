"""Writes that are constant texts: a start has some, and imports no SQLAlchemy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from .driver import driver

if TYPE_CHECKING:
    from agenthost import Row
    from sqlalchemy import Connection


class Worded:
    """A write function that runs a text and gives the rows it returns."""

    def __init__(self, sql: str, parameters: Mapping[str, Any]) -> None:
        self._sql = sql
        self._parameters = dict(parameters)

    def __call__(self, connection: Connection) -> list[Row]:
        """Run it in the transaction at hand."""
        cursor = driver(connection).cursor()
        cursor.row_factory = sqlite3.Row
        cursor.execute(self._sql, self._parameters)
        return cast("list[Row]", cursor.fetchall())


class Bare:
    """As much of a connection of SQLAlchemy as writes of this kind need."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.connection = self
        self.driver_connection = database

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Commit what is done in it, or roll it back."""
        self.driver_connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.driver_connection.execute("COMMIT")
        except BaseException:
            if self.driver_connection.in_transaction:
                self.driver_connection.execute("ROLLBACK")
            raise
