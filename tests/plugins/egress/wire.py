"""A server on loopback that does exactly what a test tells it, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

Script = Callable[["Heard", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Heard:
    """One request as it came over the wire."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name]
        return found[0] if found else None


async def _read(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = [(k, v.strip()) for k, _, v in (item.partition(":") for item in rest)]
    heard = Heard(line, headers, b"")
    if (heard.header("transfer-encoding") or "") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(heard.header("content-length") or 0))
    return Heard(line, headers, body)


@dataclass
class Wire:
    """Counts connections and requests, and answers by its script."""

    script: Script
    host: str = "127.0.0.1"
    connections: int = 0
    heard: list[Heard] = field(default_factory=list)
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            while not writer.is_closing():
                heard = await _read(reader)
                self.heard.append(heard)
                await self.script(heard, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


def answer(body: bytes = b"ok", status: str = "200 OK", **headers: str) -> bytes:
    """Write a whole answer; ``content_type="x"`` becomes a header."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def always(data: bytes) -> Script:
    """Answer every request with these bytes."""

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return script


def then_hang(data: bytes) -> Script:
    """Write these bytes and leave the rest to the other side's patience."""

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await asyncio.Event().wait()

    return script


def then_close(data: bytes = b"") -> Script:
    """Write these bytes and close."""

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        writer.close()

    return script
