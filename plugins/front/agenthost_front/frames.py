"""The frames of a WebSocket: Hypercorn's stream, held to RFC 6455."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Any

from hypercorn.protocol.events import (
    Body,
    Data,
    Event,
    Request,
    StreamClosed,
)
from hypercorn.protocol.ws_stream import FrameTooLargeError, Handshake, WSStream
from wsproto.events import CloseConnection, Message, Ping
from wsproto.frame_protocol import CloseReason

from .answers import Plain, send_whole, server_error


class SocketStream(WSStream):
    """A WebSocket from its handshake to its close frame.

    It differs from Hypercorn's in what a peer can do to it: nothing is compressed (a
    frame could grow a thousandfold), every fault is answered with its close code, and
    what belongs to a connection ends with it.
    """

    _pings: asyncio.Task[None] | None = None

    async def handle(self, event: Event) -> None:
        """Take what came from the peer."""
        if self.closed:
            return
        if isinstance(event, Request):
            self.handshake = Handshake(event.headers, event.http_version)
            refusal = _refusal(self.handshake)
            if refusal is not None:
                await self._refuse(refusal)
                return
        elif isinstance(event, Body | Data) and not self.handshake.accepted:
            fault = "frames came before the handshake was answered; wait for it"
            await self._refuse(server_error(400, fault))
            return
        await super().handle(event)
        if isinstance(event, StreamClosed):
            self._release()

    async def app_send(self, message: Any) -> None:
        """Send what the application has to say.

        Raises:
            BrokenPipeError: The peer has gone.
        """
        if self.closed and message is not None:
            raise BrokenPipeError
        await super().app_send(message)

    async def _refuse(self, plain: Plain) -> None:
        await send_whole(self, plain)
        # Hypercorn would leave the connection open, and no timer would ever end it.
        await self.send(StreamClosed(self.stream_id))
        self.closed = True

    async def _send_error_response(self, status_code: int) -> None:
        await send_whole(self, server_error(status_code))

    async def _accept(self, message: Any) -> None:
        self.handshake.extensions = None
        await super()._accept(message)

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if isinstance(event, Message):
                if not await self._take(event):
                    return
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            elif isinstance(event, CloseConnection):
                # Either the peer's own close frame, sent back, or what wsproto says
                # of a frame that is none.
                await self._end(CloseConnection(event.code, event.reason))

    async def _take(self, event: Message[Any]) -> bool:
        try:
            self.buffer.extend(event)
        except FrameTooLargeError:
            limit = f"a message may have {self.buffer.max_length} bytes"
            await self._end(CloseConnection(CloseReason.MESSAGE_TOO_BIG, limit))
            return False
        if event.message_finished and self.app_put is not None:
            await self.app_put(self.buffer.to_message())
            self.buffer.clear()
        return True

    async def _end(self, last: CloseConnection) -> None:
        await self._send_wsproto_event(last)
        await self.send(StreamClosed(self.stream_id))

    async def _send_pings(self) -> None:
        self._pings = asyncio.current_task()
        await super()._send_pings()

    def _release(self) -> None:
        if self._pings is not None:
            self._pings.cancel()
            self._pings = None
        if self.handshake.accepted:
            # wsproto reads frames in a generator that holds its owner: a ring that
            # only the collector would break.
            self.connection._proto._parse_more.close()  # noqa: SLF001


def _refusal(handshake: Handshake) -> Plain | None:
    if handshake.http_version != "1.1":
        return server_error(400, "a WebSocket needs HTTP/1.1")
    if handshake.version != b"13":
        fault = "sec-websocket-version: only 13 is spoken here"
        return server_error(426, fault)
    if not _is_key(handshake.key or b""):
        return server_error(400, "sec-websocket-key: must be 16 bytes in base64")
    return None


def _is_key(key: bytes) -> bool:
    try:
        return len(b64decode(key, validate=True)) == 16
    except ValueError:
        return False
