"""Threads for calls that block: few, of their own, and never waited for at the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Generic, NoReturn, TypeVar

from agenthost import Unavailable

from .limits import STOPPING, Limits, enter

T = TypeVar("T")


class Threads:
    """Runs each call in a thread of its own, at most ``limits.threads`` at once.

    An executor would keep its threads, and the interpreter waits for those at its
    end: one that is stuck would keep the daemon from ending.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._room = asyncio.Semaphore(limits.threads)
        self._closed = False

    async def run(self, function: Callable[[], T]) -> T:
        """Call the function in a thread and return or raise what it does.

        Raises:
            Unavailable: Every thread stayed busy.
        """
        if self._closed:
            raise Unavailable(STOPPING)
        await enter(self._room, self._limits.patience, "threads")
        call: _Call[T] = _Call(function, self._room)
        # Not the pool that files and the start use: a tool that never returns keeps its
        # own thread, and as a daemon one it does not hold up the end of the process.
        thread = threading.Thread(
            target=partial(copy_context().run, call.run),
            name="agenthost tool",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._room.release()
            raise Unavailable("this machine starts no more threads") from error
        return await call.outcome()

    async def close(self) -> None:
        """Wait a little for calls that still run; what is stuck is left behind."""
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.farewell):
                for _ in range(self._limits.threads):
                    await self._room.acquire()


class _Call(Generic[T]):
    """One call: its thread works, its loop hears of it and gives the place back."""

    def __init__(self, function: Callable[[], T], room: asyncio.Semaphore) -> None:
        self._function = function
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[Callable[[], T]] = self._loop.create_future()

    def run(self) -> None:
        """Work, in the thread."""
        result: Callable[[], T]
        try:
            result = partial(_given, self._function())
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
            result = partial(_raised, error)
        # The loop is closed when the daemon could not wait for this thread.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, result)

    async def outcome(self) -> T:
        """Wait for the thread and return or raise what the function did."""
        return (await self._done)()

    def _settle(self, result: Callable[[], T]) -> None:
        self._room.release()
        if not self._done.done():
            self._done.set_result(result)


def _given(value: T) -> T:
    return value


def _raised(error: BaseException) -> NoReturn:
    raise error
