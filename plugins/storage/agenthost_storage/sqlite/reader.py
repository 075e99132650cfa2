"""Reads: statements compiled once, run on a few read-only connections."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote

import aiosqlite
from agenthost import Row

from .connect import BUSY_TIMEOUT
from .driver import COMPILED_LIMIT
from .faults import storage_fault

if TYPE_CHECKING:
    from sqlalchemy import Select

READERS = 2


class Worded(Protocol):
    """A statement with its text."""

    @property
    def sql(self) -> str:
        """The text."""

    def arguments(self, parameters: Mapping[str, Any]) -> Any:
        """Give the parameters as SQLite takes them."""


class Text:
    """A statement that was text from the start."""

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def arguments(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Give the parameters by name."""
        return dict(parameters)


class Reader:
    """A small pool of read-only connections, each on a thread of its own."""

    def __init__(self, connections: Sequence[aiosqlite.Connection]) -> None:
        self._connections = connections
        self._busy = [0] * READERS
        self._compiled: dict[Select[Any] | str, Worded] = {}

    @classmethod
    async def open(cls, path: Path) -> Reader:
        """Open the pool on an existing database."""
        # At debug level aiosqlite logs every parameter, secrets among them.
        logging.getLogger("aiosqlite").setLevel(logging.WARNING)
        opened: list[aiosqlite.Connection] = []
        reader = cls(opened)
        try:
            while len(opened) < READERS:
                opened.append(await open_readonly(path))
        except BaseException:
            await reader.close()
            raise
        return reader

    async def all(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any]
    ) -> list[Row]:
        """Run a statement and give its rows.

        Raises:
            Unavailable: The database is locked, damaged or cannot be read.
        """
        compiled = self._compile(statement)
        arguments = compiled.arguments(parameters)
        place = self._busy.index(min(self._busy))
        self._busy[place] += 1
        try:
            rows = await self._connections[place].execute_fetchall(
                compiled.sql, arguments
            )
        except sqlite3.Error as error:
            fault = storage_fault(error)
            if fault:
                raise fault from error
            raise
        finally:
            self._busy[place] -= 1
        return cast("list[Row]", rows)

    async def close(self) -> None:
        """Close the connections after the reads that have begun."""
        for connection in self._connections:
            await connection.close()

    def _compile(self, statement: Select[Any] | str) -> Worded:
        compiled = self._compiled.get(statement)
        if compiled is None:
            if len(self._compiled) >= COMPILED_LIMIT:
                del self._compiled[next(iter(self._compiled))]
            compiled = self._compiled[statement] = _worded(statement)
        return compiled


def _worded(statement: Select[Any] | str) -> Worded:
    if isinstance(statement, str):
        return Text(statement)
    from .compiled import Compiled

    return Compiled(statement)


async def open_readonly(path: Path) -> aiosqlite.Connection:
    """Open one connection that can read and nothing else."""
    connection = await aiosqlite.connect(
        f"file:{quote(str(path))}?mode=ro",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
    )
    connection.row_factory = sqlite3.Row
    return connection
