"""One connection of the loopback front: HTTP/1.1 by h11, WebSockets by wsproto."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import h11
from wsproto import ConnectionType, WSConnection, events
from wsproto.utilities import RemoteProtocolError

from ...errors import InvalidInput, TooLarge
from ...routes import Call, SocketClosed
from .loopback_routes import Plain

HEAD_LIMIT = 16 * 1024
PATIENCE = 20.0
LINGER = 1.0
NOWHERE = "192.0.2.0"
"""Of a client that has gone before its address was read."""
TEXT_LIMIT = 512 * 1024
Headers = Sequence[tuple[str, str]]


class Wire:
    """A client's connection, as requests and answers.

    Attributes:
        client: The client's address.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self._writer = writer
        peer = writer.get_extra_info("peername") or (NOWHERE, 0)
        self.client = str(peer[0])
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)

    async def request(self) -> h11.Request | None:
        """Give the next request, None at the end.

        Raises:
            h11.RemoteProtocolError: It is none.
        """
        if self._http.our_state is h11.DONE:
            if self._http.their_state is not h11.DONE:
                return None
            self._http.start_next_cycle()
        if self._http.our_state is not h11.IDLE:
            return None
        async with asyncio.timeout(PATIENCE):
            event = await self._event()
        return event if isinstance(event, h11.Request) else None

    async def body(self, limit: int) -> bytes:
        """Read a request's body.

        Raises:
            TooLarge: It is over its limit.
            InvalidInput: It is not as it says it is.
        """
        read = bytearray()
        if self._http.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        try:
            async with asyncio.timeout(PATIENCE):
                while isinstance(event := await self._event(), h11.Data):
                    read += event.data
                    if len(read) > limit:
                        raise TooLarge(f"the body is over the limit of {limit} bytes")
        except h11.RemoteProtocolError as error:
            raise InvalidInput("body", "it is not as its headers say") from error
        return bytes(read)

    async def answer(self, plain: Plain, *, head: bool = False) -> None:
        """Send a whole answer; a body that nobody reads ends the connection."""
        with suppress(h11.RemoteProtocolError):
            while isinstance(self._http.next_event(), h11.Data):
                pass
        headers = list(plain.headers)
        if plain.status != 204:
            headers.append(("content-length", str(len(plain.body))))
        if self._http.their_state is not h11.DONE:
            headers.append(("connection", "close"))
        sent: list[h11.Event] = [self._response(plain.status, headers)]
        if plain.body and not head:
            sent.append(h11.Data(data=plain.body))
        await self._send(*sent, h11.EndOfMessage())

    async def begin(self, headers: Headers) -> None:
        """Begin an answer of pieces."""
        await self._send(self._response(200, headers))

    async def piece(self, data: bytes) -> None:
        """Send a piece of an answer."""
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        """End an answer of pieces."""
        await self._send(h11.EndOfMessage())

    async def left(self) -> None:
        """Return when the client has gone; what it asks meanwhile waits."""
        while data := await self.reader.read(1 << 16):
            self._http.receive_data(data)

    async def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """Say no more; take what is under way, lest the client misses the answer."""
        with suppress(OSError, TimeoutError):
            if self._writer.can_write_eof():
                self._writer.write_eof()
            async with asyncio.timeout(LINGER):
                while await self.reader.read(1 << 16):
                    pass
        self._writer.close()

    def abort(self) -> None:
        """Close at once."""
        self._writer.close()

    @staticmethod
    def _response(status: int, headers: Headers) -> h11.Response:
        written = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        return h11.Response(status_code=status, headers=written)

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self.reader.read(1 << 16))
        return event

    async def _send(self, *sent: h11.Event) -> None:
        data = b"".join(self._http.send(event) or b"" for event in sent)
        await self.write(data)


async def while_there(wire: Wire, work: asyncio.Task[Any]) -> bool:
    """Wait for work as long as the client is there; then it is ended.

    Returns:
        Whether the client is still there.
    """
    leaving = asyncio.create_task(wire.left())
    try:
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return not leaving.done()
    finally:
        for task in (work, leaving):
            task.cancel()
        await asyncio.wait({work, leaving})
        leaving.cancelled() or leaving.exception()


async def pump(wire: Wire, frames: AsyncIterator[bytes]) -> None:
    """Send the frames of a stream, and close it."""
    try:
        async for frame in frames:
            await wire.piece(frame)
    finally:
        await close_frames(frames)


async def close_frames(frames: AsyncIterator[bytes]) -> None:
    """Close an iterator that can be closed."""
    if (close := getattr(frames, "aclose", None)) is not None:
        await close()


class LoopbackSocket:
    """A WebSocket of the loopback front.

    Args:
        wire: Its connection, of which the upgrade was read.
        request: The upgrade.
        call: The request, as handlers see it.
    """

    def __init__(self, wire: Wire, request: h11.Request, call: Call) -> None:
        self.call = call
        self.accepted = False
        self._wire = wire
        self._frames = WSConnection(ConnectionType.SERVER)
        try:
            headers = list(request.headers)
            self._frames.initiate_upgrade_connection(headers, request.target)
        except RemoteProtocolError as error:
            raise InvalidInput("", "it is no upgrade to a WebSocket") from error
        next(self._frames.events())
        self._text = ""
        self._gone = False

    async def accept(self) -> None:
        """Finish the handshake."""
        self.accepted = True
        await self._send(events.AcceptConnection())

    async def receive(self) -> str | None:
        """The next text frame, None when the peer has gone."""
        while not self._gone:
            for event in self._frames.events():
                if isinstance(event, events.Ping):
                    await self._send(event.response())
                elif isinstance(event, events.CloseConnection):
                    self._gone = True
                    with suppress(SocketClosed):
                        await self._send(event.response())
                    return None
                elif isinstance(event, events.TextMessage):
                    self._text += event.data
                    if len(self._text) > TEXT_LIMIT:
                        await self.close(1009)
                        return None
                    if event.message_finished:
                        text, self._text = self._text, ""
                        return text
            data = b""
            with suppress(OSError):
                data = await self._wire.reader.read(1 << 16)
            if not data:
                self._gone = True
            else:
                self._frames.receive_data(data)
        return None

    async def send(self, text: str) -> None:
        """Send a text frame; SocketClosed when the peer has gone."""
        if self._gone:
            raise SocketClosed
        await self._send(events.TextMessage(data=text))

    async def close(self, code: int = 1000) -> None:
        """End it; idempotent."""
        if self.accepted and not self._gone:
            self._gone = True
            with suppress(SocketClosed):
                await self._send(events.CloseConnection(code=code))
            # Who waits for the next text hears that there is none.
            self._wire.reader.feed_eof()

    async def _send(self, event: events.Event) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._wire.write(self._frames.send(event))
        except (OSError, TimeoutError) as error:
            self._gone = True
            raise SocketClosed from error
