"""Workers of the plainest kind, for tests of what uses them: nothing is kept.

A call has a thread and a document a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn, ParamSpec, TypeVar

from agenthost_chat.chat import Json

from ...errors import Unavailable, Unreadable

P = ParamSpec("P")
T = TypeVar("T")

START = 10.0
READ = """
import importlib, json, resource, sys
path, name, options, memory = json.loads(sys.argv[1])
sys.path[:] = path
module, _, function = name.partition(":")
answers, sys.stdout = sys.stdout, sys.stderr
function = getattr(importlib.import_module(module), function)
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
print("ready", file=answers, flush=True)
answers.write(function(sys.stdin.buffer.read(), **options))
"""


class PlainWorkers:
    """Serves the port WORKERS.

    Args:
        most: Calls at once, and documents at once.
        patience: Seconds that work waits for one of them to end.
        seconds: Seconds for a document.
        memory: Bytes for a document.
    """

    def __init__(
        self,
        most: int = 4,
        patience: float = 10.0,
        seconds: float = 10.0,
        memory: int = 1 << 30,
    ) -> None:
        self._threads = asyncio.Semaphore(most)
        self._processes = asyncio.Semaphore(most)
        self._patience = patience
        self._seconds = seconds
        self._memory = memory
        self._reading: set[Process] = set()
        self._closed = False

    async def in_thread(
        self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Call a function that blocks."""
        await self._enter(self._threads)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Callable[[], T]] = loop.create_future()

        def settle(result: Callable[[], T]) -> None:
            self._threads.release()
            if not done.done():
                done.set_result(result)

        def work() -> None:
            result = _outcome(partial(function, *arguments, **options))
            with suppress(RuntimeError):  # the loop may have ended
                loop.call_soon_threadsafe(settle, result)

        threading.Thread(target=work, daemon=True).start()
        return (await done)()

    async def in_process(self, function: str, document: bytes, **options: Json) -> str:
        """Read a document of strangers in another process."""
        await self._enter(self._processes)
        try:
            process = await self._started(function, options)
            self._reading.add(process)
            try:
                return await self._text(process, document)
            finally:
                await _ended(process)
                self._reading.discard(process)
        finally:
            self._processes.release()

    async def close(self) -> None:
        """End the processes; threads end with their functions."""
        self._closed = True
        await asyncio.gather(*map(_ended, self._reading))

    async def _enter(self, room: asyncio.Semaphore) -> None:
        if self._closed:
            raise Unavailable("the workers are closed")
        try:
            async with asyncio.timeout(self._patience):
                await room.acquire()
        except TimeoutError:
            raise Unavailable("all workers are busy; try again later") from None

    async def _started(self, function: str, options: dict[str, Json]) -> Process:
        asked = [sys.path, function, options, self._memory]
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-X", "utf8", "-c", READ, json.dumps(asked)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd="/",
            env={},
        )

    async def _text(self, process: Process, document: bytes) -> str:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START):
                await process.stdout.readline()
            async with asyncio.timeout(self._seconds):
                text, _ = await process.communicate(document)
        except TimeoutError:
            raise Unreadable("the document takes too long") from None
        if process.returncode or self._closed:
            raise Unreadable("the document cannot be read")
        return text.decode()


async def _ended(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _outcome(call: Callable[[], T]) -> Callable[[], T]:
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
        return partial(_raise, error)
    return lambda: value


def _raise(error: BaseException) -> NoReturn:
    raise error
