"""The store: what the kernel and the plugins see of the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agenthost import AgentHostError, Row, SchemaSpec, Signals, SlowWrite, Unavailable
from sqlalchemy import text

from .connect import engine_of, options_of
from .faults import storage_fault
from .notices import Notices
from .reader import Reader
from .rows import Record, places_of
from .schema import prepare
from .writer import Writer

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Select

T = TypeVar("T")

NOTHING: Mapping[str, Any] = MappingProxyType({})
PROBE = "SELECT 1"


class PostgresStore:
    """A database that several daemons may have open: ``write`` and ``read``.

    Use it from the event loop that opened it.
    """

    def __init__(self, writer: Writer, reader: Reader, signals: Notices) -> None:
        self.signals: Signals | None = signals
        self._notices = signals
        self._writer = writer
        self._reader = reader
        self._readable = True
        self._closed = False
        self._trial: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, url: str, schemas: Sequence[SchemaSpec]) -> PostgresStore:
        """Open the database, filling it or bringing it up to date.

        Args:
            url: Its address, with user and password.
            schemas: The tables of every enabled plugin.

        Raises:
            ConfigError: The URL is none, or a newer version has written there.
            PluginError: A schema step failed, or two plugins claim one table.
            Unavailable: The database cannot be reached.
            StorageFull: Its disk has no room.
        """
        options = options_of(url)
        engine = engine_of(options)
        opened = await asyncio.to_thread(open_prepared, engine, schemas)
        writer, reader = Writer(engine.connect, opened), Reader(options)
        try:
            await reader.open()
        except BaseException as error:
            await writer.stop()
            fault = storage_fault(error)
            if fault:
                raise fault from error
            raise
        return cls(writer, reader, Notices(options, reader))

    @property
    def healthy(self) -> bool:
        """Whether the last write and the last probe reached the database."""
        return not self._closed and self._readable and self._writer.healthy

    @property
    def slow(self) -> Sequence[SlowWrite]:
        """Write functions that held up all others, the slowest first."""
        return self._writer.slow.list()

    def write(
        self, fn: Callable[[Connection], T], *also: Callable[[Connection], object]
    ) -> asyncio.Future[T]:
        """Run a function in a transaction; it starts at once, awaited or not.

        Args:
            fn: Short and synchronous, touches only its connection, may run twice.
                What it raises rolls back its own work and reaches the caller.
            also: Functions of the same kind that run after it in the same
                transaction: all is on disk or nothing is.

        Returns:
            Its result, once the commit is on disk. It fails with StorageFull or
            Unavailable when the storage does. A cancelled write may still happen.

        Raises:
            Unavailable: The store is closed, or thousands of writes wait.
        """
        self._refuse_when_closed()
        return self._writer.submit(fn, *also)

    async def change(
        self, sql: str, parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Run a constant text in a transaction; give the rows that it returns.

        Raises:
            Unavailable: The store is closed, or thousands of writes wait.
            StorageFull: The disk has no room.
        """
        run = partial(run_text, sql=sql, parameters=dict(parameters))
        return await self.write(run)

    async def read(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Give the rows of a statement, as of the last commit.

        Args:
            statement: Built once, at module level, with ``bindparam`` where values
                go: it is compiled at its first use and remembered by identity; or
                a constant text, with ``:name`` where values go.
            parameters: The values, by name.

        Raises:
            Unavailable: The database cannot be read now.
            TypeError: The parameters do not fit the statement.
        """
        self._refuse_when_closed()
        return await self._reader.all(statement, parameters)

    async def first(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any] = NOTHING
    ) -> Row | None:
        """Give the first row of a statement, or None."""
        rows = await self.read(statement, parameters)
        return rows[0] if rows else None

    async def probe(self) -> bool:
        """Read something and tell whether that worked.

        After a failed write it also starts an empty one, without waiting for it, so
        that the store turns healthy again without a caller's write.
        """
        try:
            await self.read(PROBE)
        except AgentHostError:
            self._readable = False
        else:
            self._readable = True
        if not self._closed and not self._writer.healthy:
            self._try_to_write()
        return self._readable

    async def close(self) -> None:
        """Finish what was written and close."""
        if self._closed:
            return
        self._closed = True
        await self._notices.stop()
        await self._writer.stop()
        await self._reader.close()

    def _try_to_write(self) -> None:
        if self._trial is None or self._trial.done():
            self._trial = self._writer.submit(nothing)
            self._trial.add_done_callback(asyncio.Future.exception)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


def nothing(_: Connection) -> None:
    """See whether a transaction begins and ends."""


def run_text(
    connection: Connection, sql: str, parameters: Mapping[str, Any]
) -> list[Row]:
    """Run a text and give the rows it returns."""
    done = connection.execute(text(sql), parameters)
    if not done.returns_rows:
        return []
    places = places_of(tuple(done.keys()))
    return [cast("Row", Record(places, tuple(row))) for row in done.all()]


def open_prepared(engine: Engine, schemas: Sequence[SchemaSpec]) -> Connection:
    """Open the writing connection and bring the schemas up to date."""
    connection: Connection | None = None
    try:
        connection = engine.connect()
        prepare(connection, schemas)
    except BaseException as error:
        if connection is not None:
            connection.invalidate()
            connection.close()
        fault = storage_fault(error)
        if fault:
            raise fault from error
        raise
    return connection
