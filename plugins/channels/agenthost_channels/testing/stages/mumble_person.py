"""A person at a Mumble client of a few lines, which knows nothing of our messages."""

import asyncio
import html
import re
import ssl
import struct
from collections.abc import Callable
from typing import Self

VERSION, LOGIN, SYNC, REMOVE, STATE, TEXT = 0, 2, 5, 8, 9, 11
Fields = list[tuple[int, int | bytes]]


def varint(number: int) -> bytes:
    """Write a number as protocol buffers do."""
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def encoded(fields: Fields) -> bytes:
    """Write a message."""
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        else:
            out += varint(number << 3) + varint(value)
    return out


def decoded(body: bytes) -> Fields:
    """Read a message."""
    fields: Fields = []
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = body[at]
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    while at < len(body):
        key = number()
        if key & 7 == 2:
            length = number()
            fields.append((key >> 3, body[at : at + length]))
            at += length
        elif key & 7 == 5:
            at += 4
        else:
            fields.append((key >> 3, number()))
    return fields


def frame(kind: int, fields: Fields) -> bytes:
    """Write a message with what goes before it on the wire."""
    body = encoded(fields)
    return struct.pack(">HI", kind, len(body)) + body


class Person:
    """Says things and remembers what came."""

    def __init__(
        self, port: int, name: str, *, certificate: str = "", password: str = ""
    ) -> None:
        self._port = port
        self.name = name
        self._certificate = certificate
        self._password = password
        self.session = 0
        self.sessions: dict[str, int] = {}
        self.got: list[tuple[bool, str]] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if self._certificate:
            context.load_cert_chain(self._certificate)
        opening = asyncio.open_connection("127.0.0.1", self._port, ssl=context)
        self._reader, self._writer = await opening
        self.write(VERSION, [(1, 1 << 16 | 3 << 8)])
        password: Fields = [(2, self._password.encode())] if self._password else []
        self.write(LOGIN, [(1, self.name.encode()), *password, (5, 1)])
        self._task = asyncio.create_task(self._read())
        await self.until(lambda: self.session)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        self._writer.close()
        await asyncio.wait([self._task])

    def write(self, kind: int, fields: Fields) -> None:
        self._writer.write(frame(kind, fields))

    async def until(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    async def say(self, text: str, to: str = "", raw: str = "") -> None:
        """Say something to somebody, or where we are."""
        words = raw or html.escape(text, quote=False).replace("\n", "<br />")
        if to:
            await self.until(lambda: to in self.sessions)
        where = (2, self.sessions[to]) if to else (3, 0)
        self.write(TEXT, [where, (5, words.encode())])
        await self._writer.drain()

    async def put_out(self, name: str) -> None:
        """Put somebody out, which takes an operator."""
        await self.until(lambda: name in self.sessions)
        self.write(REMOVE, [(1, self.sessions.pop(name)), (3, b"gone")])
        await self._writer.drain()

    async def seen(self, count: int, *, direct: bool) -> list[str]:
        def texts() -> list[str]:
            return [text for private, text in self.got if private is direct]

        await self.until(lambda: len(texts()) >= count)
        return texts()

    async def _read(self) -> None:
        while True:
            head = await self._reader.readexactly(6)
            kind, length = struct.unpack(">HI", head)
            fields = decoded(await self._reader.readexactly(length))
            found = dict(fields)
            if kind == SYNC:
                session = found[1]
                assert isinstance(session, int)
                self.session = session
            elif kind == STATE and isinstance(name := found.get(3), bytes):
                number = found[1]
                assert isinstance(number, int)
                self.sessions[name.decode()] = number
            elif kind == TEXT and isinstance(words := found[5], bytes):
                text = re.sub(r"<br ?/?>", "\n", words.decode())
                self.got.append((2 in found, html.unescape(text)))
            self._changed.set()
