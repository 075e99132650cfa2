"""Processes that read documents of strangers, and are killed rather than asked."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agenthost import Json, Unavailable, Unreadable

from .child import ANSWER, HEAD
from .limits import STOPPING, Limits, place

_log = logging.getLogger(__name__)

LONGEST_ANSWER = 16 * 1024 * 1024
GRACE = 1.0
"""Seconds after which a process ends by itself when nobody was there to kill it."""

KEPT = ("LD_LIBRARY_PATH",)
"""Variables without which some interpreters do not start; nothing else is handed on."""


class WorkerFailed(Exception):
    """A worker process gave no result."""


class WorkerProcess:
    """One process and the pipes to it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.loaded = ""

    @classmethod
    async def start(cls, limits: Limits) -> WorkerProcess:
        """Start an interpreter that knows nothing of the daemon but what to import."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-B", str(Path(__file__).with_name("child.py"))),
            _settings(limits),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd="/",
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            start_new_session=True,
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    async def load(self, function: str, seconds: float) -> None:
        """Import what reads.

        Raises:
            WorkerFailed: It cannot be imported.
            OSError: The process has ended.
            EOFError: Likewise.
        """
        if self.loaded != function:
            await self._ask({"load": function, "alarm": seconds + GRACE})
            self.loaded = function

    async def read(
        self, document: bytes, options: Mapping[str, Json], seconds: float
    ) -> str:
        """Have a document read by what is loaded; raises as :meth:`load`."""
        head = {"options": options, "alarm": seconds + GRACE}
        return await self._ask(head, document)

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def gone(self, seconds: float) -> None:
        """Wait, not for ever, until the process has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()

    async def end(self, seconds: float) -> None:
        """End the process amid an answer, and wait as :meth:`gone`."""
        self.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # asyncio closes a pipe at its end, which comes after what is in it.
                await self._pipes[1].read()
        await self.gone(seconds)

    @property
    def _pipes(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        to_it, from_it = self._process.stdin, self._process.stdout
        assert to_it is not None  # noqa: S101 - both were asked for as pipes
        assert from_it is not None  # noqa: S101
        return to_it, from_it

    async def _ask(self, head: Mapping[str, Json], document: bytes = b"") -> str:
        to_it, from_it = self._pipes
        words = json.dumps(head).encode()
        to_it.writelines((HEAD.pack(len(words), len(document)), words, document))
        await to_it.drain()
        good, length = ANSWER.unpack(await from_it.readexactly(ANSWER.size))
        if length > LONGEST_ANSWER:
            raise WorkerFailed(f"an answer of {length} bytes")
        text = (await from_it.readexactly(length)).decode("utf-8")
        if not good:
            raise WorkerFailed(text)
        return text


class Processes:
    """At most ``limits.processes`` workers, started when there is work.

    Only one that answered is used again. Any other is killed: what it was doing may
    have no end, and the memory it took is given back.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._room = asyncio.Semaphore(limits.processes)
        self._all: set[WorkerProcess] = set()
        self._idle: dict[WorkerProcess, asyncio.TimerHandle] = {}
        self._closed = False

    async def run(
        self, function: str, document: bytes, options: Mapping[str, Json]
    ) -> str:
        """Have a document read.

        Raises:
            Unreadable: There was no result within the limits.
            Unavailable: Every process stayed busy, or none can be started.
        """
        async with place(self._room, self._limits.patience, "worker processes"):
            worker = await self._worker(function)
            try:
                text = await self._text(worker, function, document, options)
            except BaseException:
                # Its place is free once it is gone, so that there are never more.
                await worker.end(self._limits.farewell)
                raise
            self._rest(worker)
            return text

    async def close(self) -> None:
        """Kill every process and wait until they are gone."""
        self._closed = True
        for timer in self._idle.values():
            timer.cancel()
        self._idle.clear()
        for worker in self._all:
            worker.kill()
        waits = (worker.gone(self._limits.farewell) for worker in self._all)
        await asyncio.gather(*waits)

    async def _worker(self, function: str) -> WorkerProcess:
        """Take one that rests, best one that has loaded the function, or a new one."""
        if self._closed:
            raise Unavailable(STOPPING)
        self._all = {worker for worker in self._all if worker.alive}
        resting = sorted(self._idle, key=lambda worker: worker.loaded == function)
        while resting:
            worker = resting.pop()
            self._idle.pop(worker).cancel()
            if worker.alive:
                return worker
        try:
            worker = await WorkerProcess.start(self._limits)
        except OSError as error:
            _log.warning("no worker process can be started: %s", error)
            raise Unavailable("this machine starts no more processes") from error
        self._all.add(worker)
        if self._closed:
            await worker.end(self._limits.farewell)
            raise Unavailable(STOPPING)
        return worker

    async def _text(
        self,
        worker: WorkerProcess,
        function: str,
        document: bytes,
        options: Mapping[str, Json],
    ) -> str:
        limits = self._limits
        try:
            async with asyncio.timeout(limits.start):
                await worker.load(function, limits.start)
            async with asyncio.timeout(limits.seconds):
                return await worker.read(document, options, limits.seconds)
        except (TimeoutError, OSError, EOFError, WorkerFailed) as error:
            # A page may have chosen the words of an error: they stay one line.
            reason = " ".join(str(error).split()) or type(error).__name__
            _log.warning("%s gave up on %d bytes: %s", function, len(document), reason)
            raise Unreadable(
                f"the document cannot be read in {limits.seconds:g} s and"
                f" {limits.memory >> 20} MB; ask for a smaller or plainer one"
            ) from error

    def _rest(self, worker: WorkerProcess) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._limits.idle, self._retire, worker)
        self._idle[worker] = timer

    def _retire(self, worker: WorkerProcess) -> None:
        del self._idle[worker]
        worker.kill()


def _settings(limits: Limits) -> str:
    """What a worker is told at its start: its memory, and where modules are."""
    path = [os.path.abspath(folder) for folder in sys.path if folder]
    return json.dumps({"memory": limits.memory, "path": path})
