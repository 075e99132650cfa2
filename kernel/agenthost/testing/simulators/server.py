"""A small HTTP/1.1 server that answers each request with the next scene."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Self

from .script import Heard, Reply, Turn, Wire


class ProviderSimulator:
    """A provider on a loopback port, for one test.

    Example:
        ::

            async with ProviderSimulator(OpenAIChatWire()) as upstream:
                upstream.play(Turn("hello"))
                ...
                assert upstream.heard[0].said == ("hi",)
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.heard: list[Heard] = []
        self._scenes: deque[Turn | Reply] = deque()
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        """The address to configure for the provider."""
        return f"http://127.0.0.1:{self._port}{self.wire.base}"

    def play(self, *scenes: Turn | Reply) -> None:
        """Answer the coming requests with these, in order."""
        self._scenes.extend(scenes)

    def forget(self) -> None:
        """Drop the scenes that nobody asked for."""
        self._scenes.clear()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        try:
            while request := await _read_request(reader):
                reply = self.reply(*request)
                await self._answer(writer, reply)
                if reply.reset:
                    _reset(writer)
                if reply.drop or reply.reset:
                    return
                if reply.stall:
                    await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    def reply(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer a request; ``:method`` and ``:path`` stand among the headers."""
        if not fnmatchcase(path.partition("?")[0], self.wire.path):
            return self.refuse(404, f"no route {path}")
        heard = replace(self.wire.hear(headers, body), url=path, headers=headers)
        self.heard.append(heard)
        scene = self.next_scene()
        if isinstance(scene, Reply):
            return scene
        if heard.stream:
            kind = {"Content-Type": self.wire.content_type}
            return Reply(tuple(self.wire.events(scene)), headers=kind)
        return Reply((self.wire.whole(scene),), headers=JSON)

    def next_scene(self) -> Turn | Reply:
        """Take the next scene of the script."""
        if not self._scenes:
            return self.refuse(500, "the script has no scene left")
        return self._scenes.popleft()

    def refuse(self, status: int, words: str) -> Reply:
        """Make an error answer of this wire."""
        return Reply((self.wire.refusal(status, words),), status, JSON)

    async def _answer(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        lines = [f"HTTP/1.1 {reply.status} Scripted"]
        fixed = {"Transfer-Encoding": "chunked"}
        lines += [
            f"{name}: {value}" for name, value in {**reply.headers, **fixed}.items()
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for chunk in filter(None, reply.chunks):
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
            await _let_the_client_read()
        if not (reply.drop or reply.stall or reply.reset):
            writer.write(b"0\r\n\r\n")
            await writer.drain()


JSON = {"Content-Type": "application/json"}
AT_ONCE = struct.pack("ii", 1, 0)


async def _let_the_client_read() -> None:
    """Give a client on the same loop the time to see each chunk apart."""
    for _ in range(4):
        await asyncio.sleep(0)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Let closing send a reset: lingering is on and lasts no time."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    writer.transport.abort()


Request = tuple[str, dict[str, str], bytes]


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read the next request of a connection; None when the client has left."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    headers[":method"], headers[":path"], _ = first.split(" ")
    return headers[":path"], headers, body
