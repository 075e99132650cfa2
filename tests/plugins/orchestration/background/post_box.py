"""A server that takes parcels as a test tells it: badly, mostly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

HANG = "hang"
DRIP = "drip"
CUT = "cut"


@dataclass
class PostBox:
    """Answers in the order that was written, then with 200.

    An answer is a status, with ``Retry-After`` seconds where it is a pair, or one of
    HANG, DRIP and CUT.
    """

    answers: list[Any] = field(default_factory=list)
    taken: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/box"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.taken]

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._take(reader)
                await self._answer(writer)
        finally:
            writer.transport.abort()

    async def _take(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.taken.append((headers, body))

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        said = self.answers.pop(0) if self.answers else 200
        if said == CUT:
            return
        if said == HANG:
            await asyncio.sleep(3_600)
        status, after = said if isinstance(said, tuple) else (said, None)
        status = 200 if said == DRIP else status
        more = "" if after is None else f"retry-after: {after}\r\n"
        length = 1_000_000 if said == DRIP else 0
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{more}"
            "location: http://169.254.169.254/\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        while said == DRIP:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def post_box(*answers: Any) -> AsyncIterator[PostBox]:
    """Open a post box on this machine."""
    box = PostBox([*answers])
    tasks: set[asyncio.Task[None]] = set()

    def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(box.serve(reader, writer)))

    server = await asyncio.start_server(taken, "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
