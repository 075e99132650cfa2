"""The protocol's own suite over a pipe: it speaks HTTP, so its messages are handed on.

The bridge adds nothing: a session has a process of ``agenthost mcp`` to itself, and
requests without one share some, one at a time. Each message goes to it or comes from it
as it stands. Processes are started ahead: the suite gives a message a second or two.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agenthost.testing.daemons import Daemons
from aiohttp import web

from ...fixture import Plugin
from .test_suite import EXTENSIONS, NODE, SUITE, pytestmark

__all__ = ["pytestmark"]


class Pipe:
    """One process, and where what it says goes."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.waiting: dict[str, asyncio.Queue[Any]] = {}
        self.unasked: asyncio.Queue[Any] = asyncio.Queue()
        self._hearing = asyncio.create_task(self._hear())

    async def say(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def _hear(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            message = json.loads(line)
            queue = self.waiting.get(json.dumps(message.get("id")))
            if queue is None or "method" in message:
                queue = next(reversed(self.waiting.values()), self.unasked)
            queue.put_nowait(message)

    async def end(self) -> None:
        self._hearing.cancel()
        await asyncio.gather(self._hearing, return_exceptions=True)
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


class Bridge:
    """HTTP on one side, pipes on the other."""

    def __init__(self, home: Path) -> None:
        self._environ = {"AGENTHOST_HOME": str(home)}
        self.sessions: dict[str, Pipe] = {}
        self.shared: list[Pipe] = []
        self.ahead: list[asyncio.Task[Pipe]] = []
        self.spoken = 0

    def start_ahead(self) -> None:
        """Have some processes ready for whoever needs one."""
        while len(self.ahead) < AHEAD:
            self.ahead.append(asyncio.create_task(self._ready()))

    async def pipe(self) -> Pipe:
        self.start_ahead()
        return await self.ahead.pop(0)

    async def _ready(self) -> Pipe:
        """Start a process, and wait until it has answered what no client sends."""
        program = [str(Path(sys.executable).with_name("agenthost")), "mcp"]
        process = await asyncio.create_subprocess_exec(
            *program, stdin=PIPE, stdout=PIPE, env=self._environ, limit=2**24
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"{\n")
        assert b"-32700" in await process.stdout.readline()
        return Pipe(process)

    async def post(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        session = request.headers.get("mcp-session-id", "")
        if message.get("method") == "initialize":
            session = uuid4().hex
            self.sessions[session] = await self.pipe()
        pipe = self.sessions.get(session) or await self._free()
        if "id" not in message or "method" not in message:
            await pipe.say(message)
            return web.Response(status=202)
        return await self._answer(request, message, pipe, session)

    async def _free(self) -> Pipe:
        for pipe in self.shared:
            if not pipe.waiting:
                return pipe
        self.shared.append(await self.pipe())
        return self.shared[-1]

    async def _answer(
        self, request: web.Request, message: Any, pipe: Pipe, session: str
    ) -> web.StreamResponse:
        ident = json.dumps(message["id"])
        queue = pipe.waiting[ident] = asyncio.Queue()
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        if session:
            stream.headers["mcp-session-id"] = session
        await stream.prepare(request)
        try:
            await pipe.say(message)
            while True:
                said = await queue.get()
                self.spoken += 1
                await stream.write(f"data: {json.dumps(said)}\n\n".encode())
                if "method" not in said:
                    del pipe.waiting[ident]
                    return stream
        finally:
            if pipe in self.shared and ident in pipe.waiting:
                # Who asked has left: the answer is nobody's.
                self.shared.remove(pipe)
                await pipe.end()
            pipe.waiting.pop(ident, None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/mcp", self.post)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        finally:
            left = await asyncio.gather(*self.ahead)
            pipes = [*self.sessions.values(), *self.shared, *left]
            await asyncio.gather(*(each.end() for each in pipes))
            await runner.cleanup()


AHEAD = 3
"""So many processes wait for somebody who needs one."""
STATUS = "sep-2575-http-server-method-not-found-404"
OF_HTTP = {
    # A browser's Host and Origin: no page writes into a pipe.
    "localhost-host-rebinding-rejected",
    # Headers that repeat the message: a pipe has none, so nothing can differ.
    "sep-2243-server-reject-invalid-headers",
    "sep-2243-server-reject-invalid-param-chars",
    "sep-2243-server-reject-param-mismatch",
    "sep-2243-server-validate-param-match",
    "sep-2575-http-server-header-mismatch-400",
    # A status: what is refused is so by its code, which other checks look at.
    "sep-2575-http-server-meta-invalid-400",
    "sep-2575-http-server-unsupported-version-400",
    "sep-2575-missing-capability-http-400",
    STATUS,
    *(f"{STATUS}-{name}" for name in ("initialize", "ping", "logging-setlevel")),
    *(f"{STATUS}-resources-{name}" for name in ("subscribe", "unsubscribe")),
    # A request that lacks its envelope: no header says that it is none of an older age.
    "sep-2575-request-meta-invalid-missing-meta",
    "sep-2575-request-meta-invalid-missing-protocol-version",
}
"""Checks that look at HTTP, and fail over a pipe: test_pipe has what holds instead."""


def failures(folder: Path) -> set[str]:
    """The checks that did not pass, of all but extensions."""
    failed = set()
    for file in folder.glob("*/checks.json"):
        if not file.parent.name.startswith(f"server-{EXTENSIONS}"):
            checks = json.loads(file.read_text())
            failed |= {each["id"] for each in checks if each["status"] == "FAILURE"}
    return failed


@pytest.mark.parametrize(
    ("revision", "least", "of_http"),
    [
        ("2025-11-25", 30, {"localhost-host-rebinding-rejected"}),
        ("2026-07-28", 35, OF_HTTP),
    ],
)
async def test_all_that_a_revision_requires_over_a_pipe(
    daemons: Daemons, tmp_path: Path, revision: str, least: int, of_http: set[str]
) -> None:
    home, told = tmp_path / "home", tmp_path / "told"
    daemon = await daemons.start(plugins=[Plugin()], home=home)
    # The command finds the daemon by what ``agenthost start`` would have left there.
    facts = {"pid": os.getpid(), "listen_addr": daemon.url.removeprefix("http://")}
    (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    bridge = Bridge(home)
    bridge.start_ahead()
    await asyncio.wait(bridge.ahead)
    async with bridge.running() as url:
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(SUITE), "server", "--url", url),
            *("--requirements", revision, "--output-dir", str(told)),
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(300):
                out, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    said = out.decode()
    assert failures(told) == of_http, said
    _, _, summary = said.partition("=== SUMMARY ===")
    rows = re.findall(r"([✓✗]) (\S+): (\d+) passed, (\d+) failed", summary)
    rows = [row for row in rows if not row[1].startswith(EXTENSIONS)]
    assert len([name for _, name, passes, _ in rows if int(passes)]) >= least, said
    assert bridge.spoken > least
