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
from typing import Any, TypeVar

from agenthost import AgentHostError, Row, SchemaSpec, SlowWrite, Unavailable
from sqlalchemy import Connection, Select, select
from sqlalchemy.exc import SQLAlchemyError

from .checking import find_damage
from .connect import connect
from .faults import storage_fault
from .presence import Presence
from .reader import Reader
from .schema import CLEAN, MARKS, damaged, is_damage, prepare, set_mark
from .writer import Writer

T = TypeVar("T")

NOTHING: Mapping[str, Any] = MappingProxyType({})
PROBE = select(MARKS.c.value).where(MARKS.c.name == CLEAN)

log = logging.getLogger(__name__)


class SqliteStore:
    """The database of one home: ``write`` functions, ``read`` statements.

    Use it from the event loop that opened it.
    """

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
        connection, whole = await asyncio.to_thread(open_prepared, path, schemas)
        presence = Presence(path)
        writer = Writer(partial(connect, path), connection, presence)
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

    async def read(
        self, statement: Select[Any], parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Give the rows of a statement, as of the last commit.

        Args:
            statement: Built once, at module level, with ``bindparam`` where values
                go: it is compiled at its first use and remembered by identity.
            parameters: The values, by name.

        Raises:
            Unavailable: The database cannot be read now.
            TypeError: The parameters do not fit the statement.
        """
        self._refuse_when_closed()
        return await self._reader.all(statement, parameters)

    async def first(
        self, statement: Select[Any], parameters: Mapping[str, Any] = NOTHING
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
        noted = self._writer.submit(partial(set_mark, name=CLEAN, value=well))
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
            self._trial = self._writer.submit(partial(set_mark, name=CLEAN, value=0))
            self._trial.add_done_callback(asyncio.Future.exception)

    async def _look_through(self, path: Path) -> None:
        if await find_damage(path):
            self._damage = damaged(path).message
            log.error("%s; nothing is written until then", self._damage)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


def open_prepared(path: Path, schemas: Sequence[SchemaSpec]) -> tuple[Connection, bool]:
    """Open the writing connection and bring the schemas up to date.

    Returns:
        The connection, and whether the file is known to be whole.
    """
    connection: Connection | None = None
    try:
        connection = connect(path)
        path.chmod(0o600)
        whole = prepare(connection, path, schemas)
    except BaseException as error:
        if connection is not None:
            connection.invalidate()
            connection.close()
        if isinstance(error, SQLAlchemyError | sqlite3.Error):
            if is_damage(error):
                raise damaged(path) from error
            fault = storage_fault(error)
            if fault:
                raise fault from error
        raise
    return connection, whole
