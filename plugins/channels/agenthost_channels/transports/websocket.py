"""A WebSocket to a vendor, over the line's guarded stream."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Self

import httpx
from agenthost import Unavailable
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from ..contract import Line

OPENING_SECONDS = 30.0
LONGEST_MESSAGE = 4 << 20
CHUNK = 65536
NO_CODE = 1006
DEFAULT_PORTS = {"wss": 443, "ws": 80}


class Closed(Unavailable):
    """The vendor has closed the WebSocket; ``number`` is its code, 1006 for none."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the vendor closed the WebSocket, with code {number}")
        self.number = number


class WebSocket:
    """An open WebSocket; one task reads it, any may write."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader, self._writer = reader, writer
        self._wire = WSConnection(ConnectionType.CLIENT)
        self._waiting: deque[Event] = deque()

    @classmethod
    async def connect(cls, line: Line, address: str) -> Self:
        """Open a WebSocket at an address of ``wss`` or ``ws``.

        Raises:
            Unavailable: Nobody is there, or it is no WebSocket.
        """
        url = httpx.URL(address)
        if url.scheme not in DEFAULT_PORTS:
            raise Unavailable("the vendor gave an address that is no WebSocket")
        tls = ssl.create_default_context() if url.scheme == "wss" else None
        port = url.port or DEFAULT_PORTS[url.scheme]
        async with asyncio.timeout(OPENING_SECONDS):
            ours = cls(*await line.connect(url.host, port, tls))
            try:
                await ours._open(url)
            except BaseException:
                ours.close()
                raise
        return ours

    async def _open(self, url: httpx.URL) -> None:
        host = url.netloc.decode("ascii")
        self._write(Request(host=host, target=url.raw_path.decode("ascii")))
        event = await self._next(OPENING_SECONDS)
        if not isinstance(event, AcceptConnection):
            status = ""
            if isinstance(event, RejectConnection):
                status = f" with status {event.status_code}"
            raise Unavailable(f"the vendor refuses the WebSocket{status}")

    async def receive(self, seconds: float) -> str:
        """Wait for the next text; after so many quiet seconds the vendor is asked.

        Raises:
            Closed: The vendor closed it.
            Unavailable: It broke, gives no sign, or said what is too long.
        """
        parts: list[str] = []
        while True:
            event = await self._next(seconds)
            if isinstance(event, TextMessage):
                parts.append(event.data)
                if sum(map(len, parts)) > LONGEST_MESSAGE:
                    raise Unavailable("the vendor sent a message over 4 MB")
                if event.message_finished:
                    return "".join(parts)

    async def _next(self, seconds: float) -> Event:
        """Give the next event; pings are answered, and what ends it is raised."""
        while True:
            while self._waiting:
                event = self._waiting.popleft()
                if isinstance(event, CloseConnection):
                    raise Closed(int(event.code))
                if not isinstance(event, Ping):
                    return event
                self._write(event.response())
            try:
                self._wire.receive_data(await self._read(seconds))
                self._waiting.extend(self._wire.events())
            except (OSError, ProtocolError):
                raise Unavailable("the WebSocket to the vendor broke") from None

    async def _read(self, seconds: float) -> bytes:
        for asked in (False, True):
            try:
                async with asyncio.timeout(seconds):
                    data = await self._reader.read(CHUNK)
            except TimeoutError:
                if not asked:
                    self._write(Ping())
                continue
            if not data:
                raise Closed(NO_CODE)
            return data
        raise Unavailable("the vendor has fallen silent")

    async def send(self, text: str) -> None:
        """Send a text.

        Raises:
            Unavailable: It is closed.
        """
        try:
            self._write(TextMessage(data=text))
            await self._writer.drain()
        except (OSError, ProtocolError):
            raise Unavailable("the WebSocket to the vendor is closed") from None

    def _write(self, event: Event) -> None:
        self._writer.write(self._wire.send(event))

    def close(self) -> None:
        """Close the connection below; what was sent is still flushed."""
        self._writer.close()
