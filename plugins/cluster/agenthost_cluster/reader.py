"""Reads: statements compiled once, run on a few connections of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import psycopg
from agenthost import Row

from .compiled import Compiled, Compiler
from .connect import open_reading
from .faults import storage_fault, unfit
from .rows import as_record

if TYPE_CHECKING:
    from sqlalchemy import Select

READERS = 4


class Reader:
    """A small pool; a connection is opened when all others are busy."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._compile = Compiler()
        self._places = [Place(options) for _ in range(READERS)]

    async def open(self) -> None:
        """See that the database can be read."""
        await self._places[0].connection()

    async def all(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any]
    ) -> list[Row]:
        """Run a statement and give its rows.

        Raises:
            Unavailable: The database cannot be reached, or took too long.
            InvalidInput: A value is none that it can hold.
        """
        compiled = self._compile(statement)
        arguments = compiled.arguments(parameters)
        place = min(self._places, key=lambda each: each.busy)
        place.busy += 1
        try:
            return await place.rows(compiled, arguments)
        except psycopg.Error as error:
            fault = storage_fault(error) or unfit(error)
            if fault:
                raise fault from error
            raise
        finally:
            place.busy -= 1

    async def close(self) -> None:
        """Close the connections after the reads that have begun."""
        for place in self._places:
            await place.close()


class Place:
    """One connection, opened when it is first needed and again when it was lost."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.busy = 0
        self._options = options
        self._opening = asyncio.Lock()
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def connection(self) -> psycopg.AsyncConnection[Any]:
        """Give the connection."""
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await open_reading(self._options)
            return self._connection

    async def rows(
        self, compiled: Compiled, arguments: Mapping[str, Any] | None
    ) -> list[Row]:
        """Read; once more on a new connection where the old one turns out lost."""
        connection = await self.connection()
        try:
            return await _rows(connection, compiled, arguments)
        except psycopg.OperationalError:
            if not connection.closed:
                raise
        return await _rows(await self.connection(), compiled, arguments)

    async def close(self) -> None:
        """Close it after the read that has begun."""
        if self._connection is not None:
            async with self._connection.lock:
                await self._connection.close()


async def _rows(
    connection: psycopg.AsyncConnection[Any],
    compiled: Compiled,
    arguments: Mapping[str, Any] | None,
) -> list[Row]:
    cursor = connection.cursor(row_factory=as_record)
    await cursor.execute(compiled.sql, arguments)
    return cast("list[Row]", await cursor.fetchall())
