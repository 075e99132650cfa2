"""A server that is a program here, spoken to over its standard input and output."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenthost import JsonObject, Unavailable

from .inbox import Inbox, Pulse
from .settings import McpServer
from .wire import (
    FRAME_BYTES,
    Lost,
    cancelled,
    modern,
    notification,
    read,
    request,
    result_of,
)

log = logging.getLogger(__name__)

LAUNCHER = Path(__file__).with_name("launcher.py")
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
FAREWELL = 1.0
"""Seconds to end by itself once its input has ended."""
LINES_A_MINUTE = 30
LINE_CHARACTERS = 500
TURNS = 50
"""After so many messages the loop has others run, should they come without end."""


def environment(server: McpServer, environ: Mapping[str, str]) -> dict[str, str]:
    """Give what the program sees of the daemon's variables: few, and those it names."""
    return {name: environ[name] for name in (*KEPT, *server.env) if name in environ}


async def open_stdio(
    server: McpServer, environ: Mapping[str, str], folder: Path, inbox: Inbox
) -> Stdio:
    """Start the program.

    Raises:
        Unavailable: It is not there, or nothing can be started now.
    """
    seen, transport = environment(server, environ), server.transport
    path = seen.get("PATH", os.defpath)
    program = await asyncio.to_thread(_found, transport.command, path)
    if program is None:
        raise Unavailable(f"there is no program {transport.command!r} in its PATH")
    theirs, lifeline = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(LAUNCHER), str(theirs)),
            *(program, *transport.args),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=seen,
            cwd=folder,
            pass_fds=(theirs,),
            start_new_session=True,
            limit=FRAME_BYTES,
        )
    except (OSError, ValueError) as error:
        os.close(lifeline)
        raise Unavailable("no process can be started now") from error
    finally:
        os.close(theirs)
    return Stdio(server.name, process, lifeline, inbox)


class Stdio:
    """A running program.

    Attributes:
        modern: Whether requests carry the envelope of the modern revision.
    """

    def __init__(
        self,
        name: str,
        process: asyncio.subprocess.Process,
        lifeline: int,
        inbox: Inbox,
    ) -> None:
        self.modern = False
        self._name = name
        self._process = process
        self._lifeline: int | None = lifeline
        self._inbox = inbox
        self._last = ""
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Hear it until it ends.

        Raises:
            Lost: It has ended, or says what nobody understands.
        """
        words = asyncio.create_task(self._keep_words())
        try:
            await self._hear()
        except Lost as error:
            self._inbox.lose(error.message)
            raise
        finally:
            words.cancel()
            await asyncio.gather(words, return_exceptions=True)

    def agreed(self, version: str) -> None:
        """Nothing here depends on it."""

    async def ask(
        self,
        method: str,
        params: JsonObject,
        pulse: Pulse,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - of HTTP alone
    ) -> dict[str, Any]:
        """Ask and wait for the result.

        Raises:
            RpcError: It refuses.
            Lost: It has ended.
            TimeoutError: It does not answer.
        """
        async with pulse:
            ident, answer = self._inbox.open(pulse)
            try:
                told = _with_token(params, ident) if method == "tools/call" else params
                if self.modern:
                    told = modern(told, self._inbox.capabilities)
                await self._send(request(method, told, ident))
                return result_of(await answer)
            except (asyncio.CancelledError, TimeoutError):
                if method == "tools/call":
                    self._forget(ident)
                raise
            finally:
                self._inbox.close(ident)

    async def tell(self, method: str, params: JsonObject) -> None:
        """Notify it."""
        await self._send(notification(method, params))

    async def reply(self, message: Mapping[str, Any]) -> None:
        """Answer what it has asked."""
        await self._send(message)

    async def close(self) -> None:
        """End the program and all that it has started."""
        self._inbox.lose("the connection was closed")
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is None:
            return
        process = self._process
        # The process counts as ended once its pipes were read to their ends.
        drains = [
            asyncio.create_task(_drain(pipe))
            for pipe in (process.stdout, process.stderr)
            if pipe is not None
        ]
        try:
            if process.stdin is not None:
                process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL):
                    await process.wait()
        finally:
            # The launcher hears this, and kills the whole group.
            os.close(lifeline)
            with suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL):
                    await process.wait()
            for task in drains:
                task.cancel()
            # Who left the group may hold a pipe, which would stay open here.
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001

    async def _hear(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - asked for as a pipe
        turn = 0
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError as error:
                raise Lost("it sends a message of over 8 MiB") from error
            if not line:
                raise Lost(await self._end())
            turn += 1
            if turn % TURNS == 0:
                await asyncio.sleep(0)
            if line.strip():
                for message in _read(line):
                    if reply := self._inbox.take(message):
                        await self._send(reply)

    async def _end(self) -> str:
        """Say how it ended, in its own last words, which come a little later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL):
                await self._process.wait()
        await asyncio.sleep(0)
        return f"the program ended: {self._last or 'it said nothing'}"

    async def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - asked for as a pipe
        data = json.dumps(message).encode() + b"\n"
        try:
            # Two that wait for a full pipe must not meet in drain().
            async with self._writing:
                self._process.stdin.write(data)
                await self._process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise Lost(
                f"the program ended: {self._last or 'it hears no more'}"
            ) from error

    def _forget(self, ident: int) -> None:
        """Tell it that nobody waits any more; the pipe takes it, or it is not told."""
        assert self._process.stdin is not None  # noqa: S101 - asked for as a pipe
        data = json.dumps(cancelled(ident)).encode() + b"\n"
        with suppress(OSError, RuntimeError):
            self._process.stdin.write(data)

    async def _keep_words(self) -> None:
        """Log what it says beside the protocol; so much a minute, and no more."""
        assert self._process.stderr is not None  # noqa: S101 - asked for as a pipe
        loop = asyncio.get_running_loop()
        minute, lines = loop.time(), 0
        kept = b""
        while data := await self._process.stderr.read(64 * 1024):
            *whole, kept = (kept + data).split(b"\n")
            kept = kept[:LINE_CHARACTERS]
            if loop.time() - minute >= 60:
                minute, lines = loop.time(), 0
            for line in whole[-LINES_A_MINUTE:]:
                text = line.decode("utf-8", "replace")[:LINE_CHARACTERS]
                text = " ".join(text.split())
                self._last = text[:200] or self._last
                lines += 1
                if text and lines <= LINES_A_MINUTE:
                    log.info("mcp server %s: %s", self._name, text)


async def _drain(pipe: asyncio.StreamReader) -> None:
    while await pipe.read(64 * 1024):
        pass


def _found(command: str, path: str) -> str | None:
    program = shutil.which(command, path=path)
    return program and os.path.abspath(program)


def _read(line: bytes) -> list[dict[str, Any]]:
    try:
        return read(line)
    except Lost:
        # Programs print greetings where only messages belong; that is no reason.
        return []


def _with_token(params: JsonObject, ident: int) -> dict[str, Any]:
    return {**params, "_meta": {"progressToken": ident}}
