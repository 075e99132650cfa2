"""The one writer: a thread that commits everything waiting in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from agenthost import PluginError, Unavailable
from agenthost_values.value_class import value_class

from .faults import storage_fault, unfit
from .slow import SlowWrites

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")
WriteFunction = Callable[["Connection"], T]
Work = tuple[WriteFunction[Any], ...]
"""A function, and what is run after it in the same transaction."""
Task = tuple[Work, "asyncio.Future[Any]"]

BATCH = 256
QUEUE_LIMIT = 8192


@value_class
class Failure:
    """What a write ended with instead of a result; ``storage`` blames the database."""

    error: Exception
    storage: bool = False


class Writer:
    """Runs write functions on a thread of its own, many to a commit.

    Args:
        connect: Opens a connection, anew after each fault of the storage.
        opened: The first one; the writer closes it.
    """

    def __init__(self, connect: Callable[[], Connection], opened: Connection) -> None:
        self.healthy = True
        self.slow = SlowWrites()
        self._connect = connect
        self._connection: Connection | None = opened
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._waiting = 0
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        Thread(target=self._run, name="agenthost-writer", daemon=True).start()

    def submit(
        self, fn: WriteFunction[T], *also: WriteFunction[object]
    ) -> asyncio.Future[T]:
        """Queue a function; the future has its result once it is on disk.

        Raises:
            Unavailable: Thousands wait already.
        """
        if self._waiting >= QUEUE_LIMIT:
            raise Unavailable("too many writes are waiting for the database; try again")
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
                self._tell(self._deliver, batch, self._commit(batch))
        self._disconnect()
        self._tell(self._ended.set_result, None)

    def _take(self) -> tuple[list[Task], bool]:
        """Wait for one task and take what stands behind it; False is the end."""
        batch: list[Task] = []
        task = self._queue.get()
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
        try:
            if self._connection is None:
                self._connection = self._connect()
        except Exception as error:  # noqa: BLE001 - the thread outlives every fault
            return [Failure(failure_of(error).error, storage=True)] * len(batch)
        return self._together(self._connection, works)

    def _together(
        self, connection: Connection, works: Sequence[Work | None]
    ) -> list[Any]:
        try:
            with connection.begin():
                return [
                    self._perform(work, connection) if work else None for work in works
                ]
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
        for index, work in enumerate(works):
            if self._connection is None:
                lost = Failure(
                    Unavailable("the database was lost; try again"), storage=True
                )
                return outcomes + [lost] * (len(works) - index)
            outcomes += self._together(self._connection, (work,))
        return outcomes

    def _disconnect(self) -> None:
        """Drop the connection, and with it what it held; the next batch opens another.

        Nobody can tell in which state a connection is after a fault.
        """
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                connection.invalidate()
                connection.close()
        except Exception:  # nosec B110 # noqa: BLE001, S110 - it is being thrown away
            pass

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._disconnect()

    def _deliver(self, batch: list[Task], outcomes: list[Any]) -> None:
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
        self.healthy = not broken


def failure_of(error: BaseException) -> Failure:
    """Say what the caller is told of an error."""
    fault = storage_fault(error)
    if fault:
        fault.__cause__ = error
        return Failure(fault, storage=True)
    refused = unfit(error)
    if refused:
        return Failure(refused)
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return Failure(error)
    return Failure(PluginError(f"a write raised {type(error).__name__}"))
