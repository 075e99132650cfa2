"""Whoever is asked by an outbound request: a script, or a server that has one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from ...errors import NotSent
from ..simulators.script import Reply


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came; names of headers are in lower case.

    ``connection`` tells which one brought it, counted from 1.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    connection: int = 1


class Peer:
    """Answers requests by its script: ``answer`` gives the reply to each.

    A reply of status 0 says nothing, and ``drop`` or ``stall`` what happens then.

    Attributes:
        url: Where it is; ``other`` is the same by another name, and at ``nowhere``
            there is nobody.
        answer: The script; it may raise what an egress raises.
        heard: The requests that came.
        left: Set when somebody goes before the end of an answer.
    """

    def __init__(self) -> None:
        self.url = "http://peer.example"
        self.other = "http://other.example"
        self.nowhere = "http://nowhere.example"
        self.answer: Callable[[Asked], Reply] = lambda _: Reply([b"ok"])
        self.heard: list[Asked] = []
        self.left = asyncio.Event()

    def hear(self, asked: Asked) -> Reply:
        """Take note of a request and answer it.

        Raises:
            NotSent: Nobody is where it was sent.
        """
        if asked.url.startswith(self.nowhere):
            raise NotSent("nobody is there")
        self.heard.append(asked)
        return self.answer(asked)


class LocalPeer(Peer):
    """A peer on a loopback port; it listens inside ``async with``."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        gone = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port, free = (s.sockets[0].getsockname()[1] for s in (self._server, gone))
        gone.close()
        self.url = f"http://127.0.0.1:{port}"
        self.other = f"http://localhost:{port}"
        self.nowhere = f"http://127.0.0.1:{free}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in tuple(self._open):
            writer.close()
        while self._open:  # noqa: ASYNC110 - each ends in the next round
            await asyncio.sleep(0)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        number = self.connections
        self._open.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer, number):
                pass
        self._open.discard(writer)
        writer.close()

    async def _one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        reply = self.hear(await _read(reader, number))
        if reply.status:
            writer.write(_head(reply))
            for chunk in reply.chunks:
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                await writer.drain()
        if reply.stall:
            await reader.read()
            self.left.set()
        elif reply.status and not reply.drop:
            writer.write(b"0\r\n\r\n")
            return True
        return False


def _head(reply: Reply) -> bytes:
    headers = {**reply.headers, "transfer-encoding": "chunked"}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {reply.status} OK", *lines, "", ""]).encode()


async def _read(reader: asyncio.StreamReader, number: int) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    pairs = (one.partition(":") for one in rest)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, target, _ = line.split(" ")
    return Asked(method, f"http://{headers['host']}{target}", headers, body, number)
