"""The one writer: a thread that commits everything waiting in one transaction."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast

from agenthost import PluginError, Unavailable
from agenthost_values.value_class import value_class

from .faults import storage_fault
from .presence import Presence
from .slow import SlowWrites
from .wal import Truncation
from .worded import Bare, Worded

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")
WriteFunction = Callable[["Connection"], T]
Work = tuple[WriteFunction[Any], ...]
"""A function, and what is run after it in the same transaction."""
Task = tuple[Work, "asyncio.Future[Any]"]
Opened = Union[sqlite3.Connection, "Connection"]
"""A connection as SQLite gives it, or with SQLAlchemy around it."""

BATCH = 256
QUEUE_LIMIT = 8192
LOOK_EVERY = 1.0
"""Seconds for which writes rely on the file's being in its place."""

log = logging.getLogger(__name__)


@value_class
class Failure:
    """What a write ended with instead of a result; ``storage`` blames the disk."""

    error: Exception
    storage: bool = False


class Writer:
    """Runs write functions on a thread of its own, many to a commit.

    Args:
        connect: Puts SQLAlchemy around the connection it is given, or around one that
            it opens: anew after a storage fault.
        opened: The first connection; the writer closes it.
        presence: Watches the database file.
    """

    def __init__(
        self,
        connect: Callable[..., Connection],
        opened: Opened,
        presence: Presence,
    ) -> None:
        self.healthy = True
        self.slow = SlowWrites()
        self._presence = presence
        self._truncation = Truncation()
        self._connect = connect
        self._bare: sqlite3.Connection | None = None
        self._connection: Connection | None = None
        # One that is bare waits for the first write: SQLAlchemy takes long to import.
        if isinstance(opened, sqlite3.Connection):
            self._bare = opened
        else:
            self._connection = opened
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._waiting = 0
        self._wrote = False
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        Thread(target=self._run, name="agenthost-writer", daemon=True).start()

    def submit(
        self, fn: WriteFunction[T], *also: WriteFunction[object]
    ) -> asyncio.Future[T]:
        """Queue a function; the future has its result once it is on disk.

        Args:
            fn: What is run.
            also: What is run after it, in its transaction.

        Raises:
            Unavailable: Thousands wait already.
        """
        if self._waiting >= QUEUE_LIMIT:
            raise Unavailable("too many writes are waiting for the disk; try again")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting += 1
        self._queue.put(((fn, *also), future))
        return future

    async def stop(self) -> None:
        """End the thread after everything queued so far, and close the connection."""
        self._queue.put(None)
        await self._ended

    def _run(self) -> None:
        running = True
        while running:
            batch, running = self._take()
            if batch:
                outcomes = self._commit(batch)
                self._tell(self._deliver, batch, outcomes, self._wrote)
            if running and self._truncation.patience == 0.0:
                self._tidy()
        self._disconnect()
        self._tell(self._ended.set_result, None)

    def _take(self) -> tuple[list[Task], bool]:
        """Wait for one task and take what stands behind it; False is the end.

        There is none when it is time to tidy instead.
        """
        batch: list[Task] = []
        try:
            task = self._queue.get(timeout=self._truncation.patience)
        except Empty:
            return batch, True
        while task is not None:
            batch.append(task)
            if len(batch) == BATCH:
                return batch, True
            try:
                task = self._queue.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _commit(self, batch: list[Task]) -> list[Any]:
        # A caller that left before its write began is spared the work.
        works = [None if future.cancelled() else work for work, future in batch]
        self._wrote = False
        try:
            connection = self._connection_for(works)
        except Exception as error:  # noqa: BLE001 - the thread outlives every fault
            return [Failure(failure_of(error).error, storage=True)] * len(batch)
        self._truncation.written()
        return self._together(connection, works)

    def _connection_for(self, works: Sequence[Work | None]) -> Connection:
        functions = (function for work in works for function in work or ())
        if self._bare is None or not all(isinstance(f, Worded) for f in functions):
            return self._present()
        self._presence.require(LOOK_EVERY)
        return cast("Connection", Bare(self._bare))

    def _present(self) -> Connection:
        """Give the connection to the file that is meant."""
        if self._connection is None:
            # A new connection would make a new file where the old one was.
            self._presence.require()
            bare, self._bare = self._bare, None
            self._connection = self._connect(bare)
        self._presence.require(LOOK_EVERY)
        return self._connection

    def _tidy(self) -> None:
        try:
            self._truncation.run(self._present())
        except Exception as error:  # noqa: BLE001 - the thread outlives every fault
            self._truncation.postpone()
            log.warning("the write-ahead log could not be emptied: %s", error)
            self._disconnect()

    def _together(
        self, connection: Connection, works: Sequence[Work | None]
    ) -> list[Any]:
        try:
            before = _changes(connection)
            with connection.begin():
                outcomes = [
                    self._perform(work, connection) if work else None for work in works
                ]
            self._wrote = self._wrote or _changes(connection) != before
            return outcomes
        except BaseException as error:  # noqa: BLE001 - the thread outlives every fault
            failure = failure_of(error)
            if failure.storage and isinstance(failure.error, Unavailable):
                self._disconnect()
                return [failure] * len(works)
            if len(works) == 1:
                return [failure]
        return self._alone(works)

    def _perform(self, work: Work, connection: Connection) -> Any:
        result = self.slow.run(work[0], connection)
        for also in work[1:]:
            self.slow.run(also, connection)
        return result

    def _alone(self, works: Sequence[Work | None]) -> list[Any]:
        """Run each in a transaction of its own, so that one fault stays with one."""
        outcomes: list[Any] = []
        if self._bare is not None:
            self._present()
        for index, work in enumerate(works):
            if self._connection is None:
                lost = Failure(
                    Unavailable("the database was lost; try again"), storage=True
                )
                return outcomes + [lost] * (len(works) - index)
            outcomes += self._together(self._connection, (work,))
        return outcomes

    def _disconnect(self) -> None:
        """Drop the connection; the next batch opens another.

        After a failed fsync nothing this connection says about the disk is worth
        anything.
        """
        connection, self._connection = self._connection, None
        bare, self._bare = self._bare, None
        try:
            if connection is not None:
                connection.invalidate()
                connection.close()
            if bare is not None:
                bare.close()
        except Exception:  # nosec B110 # noqa: BLE001, S110 - it is being thrown away
            pass

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._disconnect()

    def _deliver(self, batch: list[Task], outcomes: list[Any], wrote: bool) -> None:  # noqa: FBT001 - called by the loop
        self._waiting -= len(batch)
        broken = False
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            failed = isinstance(outcome, Failure)
            broken = broken or (failed and outcome.storage)
            if future.done():
                continue
            if failed:
                future.set_exception(outcome.error)
            else:
                future.set_result(outcome)
        # A commit that changed nothing reached no disk, and so proves nothing of it.
        if broken or wrote:
            self.healthy = not broken


def _changes(connection: Connection) -> int:
    """Count the rows that the connection has changed so far."""
    raw = connection.connection.driver_connection
    return int(getattr(raw, "total_changes", 0))


def failure_of(error: BaseException) -> Failure:
    """Say what the caller is told of an error."""
    fault = storage_fault(error)
    if fault:
        fault.__cause__ = error
        return Failure(fault, storage=True)
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return Failure(error)
    return Failure(PluginError(f"a write raised {type(error).__name__}"))
