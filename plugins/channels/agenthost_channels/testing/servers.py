"""Real servers on loopback: the system's, or those of packages that were unpacked."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import pytest

FETCHED = Path(".cache/servers/root")
"""Where a folder has packages unpacked; ``make channels`` does that."""
PROGRAMS = Path(".cache/programs")
"""Where it has programs of Python, each in an environment of its own."""
UP_SECONDS = 60
DOWN_SECONDS = 10


PLACES = os.defpath + ":/usr/sbin:/sbin"
# Programs of packages that are only unpacked look for their parts below /usr: they
# see them there, and nobody else does.
OVERLAY = 'mount -t overlay overlay -o "lowerdir=$0/usr:/usr" /usr; exec "$@"'


def found(program: str) -> tuple[str, ...]:
    """Give what starts a server; the test is skipped where its program is missing."""
    if path := shutil.which(program, path=PLACES) or shutil.which(program):
        return (path,)
    for own in PROGRAMS.glob(f"*/bin/{program}"):
        return (str(own.absolute()),)
    for folder in ("usr/sbin", "usr/bin"):
        if (FETCHED / folder / program).exists():
            alone = (
                "unshare",
                "--mount",
                "sh",
                "-ec",
                OVERLAY,
                str(FETCHED.absolute()),
            )
            return (*alone, f"/{folder}/{program}")
    pytest.skip(f"no {program} here: install its package")


def free_port() -> int:
    """Find a port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def serving(*argv: str, port: int) -> AsyncIterator[None]:
    """Run a server until the test is through with it."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        env={"PATH": PLACES},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await _answers(port, process)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), DOWN_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _answers(port: int, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(UP_SECONDS):
        while True:
            assert process.returncode is None, "the server has ended"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                await writer.wait_closed()
                return


async def closing() -> None:
    """Let the loop close what was told to close: it takes some rounds."""
    for _ in range(10):
        await asyncio.sleep(0)


class Cable:
    """What stands between an adapter and its server, and can be pulled out."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.pull()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await closing()

    def pull(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, far_writer]
        ways = (self._copy(reader, far_writer), self._copy(far_reader, writer))
        await asyncio.gather(*ways)

    @staticmethod
    async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()
