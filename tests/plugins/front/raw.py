"""A client that sends bytes as they are."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import httpx

from .conftest import Running

ECHO = "/api/echo/00000000-0000-0000-0000-000000000001"
KEY_LINE = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="


@dataclass(frozen=True)
class Answered:
    """What came until the server closed."""

    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def error(self) -> str:
        """The error it tells."""
        assert self.headers["content-type"] == "application/json"
        assert int(self.headers["content-length"]) == len(self.body)
        told = json.loads(self.body)
        assert set(told) == {"error", "code"}
        return str(told["error"])


async def say(front: Running, *pieces: bytes) -> bytes:
    """Send the pieces one after another; return all that comes until the end."""
    reader, writer = await asyncio.open_connection(front.host, front.port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    async with asyncio.timeout(30):
        said = await reader.read()
    writer.close()
    return said


async def ask(front: Running, *lines: str, body: bytes = b"") -> Answered:
    """Send a request's lines; the connection must end with its answer."""
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return answered(await say(front, head + body))


def answered(said: bytes) -> Answered:
    """Read the one answer that came."""
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = [(name, value) for name, _, value in (x.partition(": ") for x in lines)]
    return Answered(int(first.split()[1]), httpx.Headers(pairs), body)


def upgrade(path: str = ECHO, *more: str, version: str = "13") -> bytes:
    """The request that asks for a WebSocket."""
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Version: {version}",
        KEY_LINE,
        *more,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"
