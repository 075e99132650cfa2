"""The store: what the kernel and the plugins see of the database."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from agenthost import AgentHostError, Row, SchemaSpec, Signals, SlowWrite, Unavailable

from .checking import find_damage
from .connect import connect, raw
from .damage import CLEAN, damaged, is_damage
from .faults import storage_fault
from .presence import Presence
from .reader import Reader
from .ready import take_up
from .worded import Worded
from .writer import Opened, Writer

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

T = TypeVar("T")

NOTHING: Mapping[str, Any] = MappingProxyType({})
PROBE = f"SELECT value FROM store_marks WHERE name = '{CLEAN}'"  # nosec B608 # noqa: S608 - constant

log = logging.getLogger(__name__)


class SqliteStore:
    """The database of one home: ``write`` functions, ``read`` statements.

    Use it from the event loop that opened it.
    """

    signals: Signals | None = None

    def __init__(self, writer: Writer, reader: Reader, presence: Presence) -> None:
        self._writer = writer
        self._reader = reader
        self._presence = presence
        self._damage: str | None = None
        self._check: asyncio.Task[None] | None = None
        self._readable = True
        self._closed = False
        self._trial: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, path: Path, schemas: Sequence[SchemaSpec]) -> SqliteStore:
        """Open the database, making it or bringing it up to date.

        Args:
            path: The database file; its folder exists.
            schemas: The tables of every enabled plugin.

        Raises:
            ConfigError: The file is damaged, or written by a newer version.
            PluginError: A schema step failed, or two plugins claim one table.
            Unavailable: The file is locked or cannot be opened.
            StorageFull: The disk has no room for it.
        """
        opened, whole = await asyncio.to_thread(open_prepared, path, schemas)
        presence = Presence(path)
        writer = Writer(partial(connect, path), opened, presence)
        try:
            reader = await Reader.open(path)
        except BaseException as error:
            await writer.stop()
            fault = storage_fault(error)
            if fault:
                raise fault from error
            raise
        store = cls(writer, reader, presence)
        if not whole:
            # It reads the whole file: a start need not wait for that.
            store._check = asyncio.create_task(store._look_through(path))
        return store

    @property
    def healthy(self) -> bool:
        """Whether the last write and the last probe reached the disk."""
        usable = self._damage is None and not self._closed
        return usable and self._readable and self._writer.healthy

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
                transaction: all is on disk or nothing is. The caller gets what the
                first of them raises.

        Returns:
            Its result, once the commit is on disk. It fails with StorageFull or
            Unavailable when the storage does. A cancelled write may still happen.

        Raises:
            Unavailable: The store is closed or damaged, or thousands of writes wait.
        """
        self._refuse_when_closed()
        if self._damage is not None:
            raise Unavailable(self._damage)
        return self._writer.submit(fn, *also)

    async def change(
        self, sql: str, parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Run a constant text in a transaction; give the rows that it returns.

        Raises:
            Unavailable: The store is closed or damaged, or thousands of writes wait.
            StorageFull: The disk has no room.
        """
        return await self.write(Worded(sql, parameters))

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
        """Read one row and tell whether that worked, from the file that is meant.

        After a failed write it also starts a small one, without waiting for it, so
        that the store turns healthy again without a caller's write.
        """
        try:
            await self.read(PROBE)
        except AgentHostError:
            self._readable = False
        else:
            self._readable = await asyncio.to_thread(self._presence.holds)
        if not self._closed and not self._writer.healthy:
            self._try_to_write()
        return self._readable and self._damage is None

    async def close(self) -> None:
        """Finish what was written, note that all is well, and close."""
        if self._closed:
            return
        # A damaged database is left as after a crash: the next start looks and refuses.
        well = int(self._damage is None)
        noted = self._writer.submit(partial(note, value=well))
        self._closed = True
        with suppress(AgentHostError):
            await noted
        if self._check is not None:
            self._check.cancel()
            await asyncio.gather(self._check, return_exceptions=True)
        await self._reader.close()
        await self._writer.stop()

    def _try_to_write(self) -> None:
        if self._trial is None or self._trial.done():
            self._trial = self._writer.submit(partial(note, value=0))
            self._trial.add_done_callback(asyncio.Future.exception)

    async def _look_through(self, path: Path) -> None:
        if await find_damage(path):
            self._damage = damaged(path).message
            log.error("%s; nothing is written until then", self._damage)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


def note(connection: Connection, value: int) -> None:
    """Set the mark of a database that was closed in order, or take it away."""
    from .schema import set_mark

    set_mark(connection, CLEAN, value)


def open_prepared(path: Path, schemas: Sequence[SchemaSpec]) -> tuple[Opened, bool]:
    """Open the writing connection and bring the schemas up to date.

    Returns:
        The connection, and whether the file is known to be whole.
    """
    database: sqlite3.Connection | None = None
    try:
        database = raw(path)
        path.chmod(0o600)
        if take_up(database, schemas):
            return database, False
        return _brought_up(path, database, schemas)
    except BaseException as error:
        if database is not None:
            database.close()
        if is_damage(error):
            raise damaged(path) from error
        fault = storage_fault(error)
        if fault:
            raise fault from error
        raise


def _brought_up(
    path: Path, database: sqlite3.Connection, schemas: Sequence[SchemaSpec]
) -> tuple[Connection, bool]:
    from .schema import prepare

    connection = connect(path, database)
    try:
        return connection, prepare(connection, path, schemas)
    except BaseException:
        connection.invalidate()
        connection.close()
        raise
