"""aiohttp's connections, spared what they do for nothing."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import StreamWriter
from aiohttp.payload import BytesPayload

if TYPE_CHECKING:
    from aiohttp.connector import Connection as Held

_AT_ONCE = 32 * 1024
"""Bytes of a body of which a connection without a backlog takes all without a pause."""


class Connector(aiohttp.TCPConnector):
    """Makes connections of :class:`Connection`.

    Should a later aiohttp make them another way, they are its own, and only slower.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        loop = asyncio.get_running_loop()
        handler: type[ResponseHandler] = Connection
        self._factory = partial(handler, loop=loop)


class Request(aiohttp.ClientRequest):
    """Sends a small body in the task of the request, as aiohttp does from 3.12 on.

    Before, it makes a task of each body: a fiftieth of a model's call, whose request
    also leaves a round of the event loop later. A large body needs the task, for its
    answer may come before its end.
    """

    async def send(self, conn: Held) -> aiohttp.ClientResponse:
        """Send head and body, and give the answer that is to be read."""
        body, protocol = self._body, conn.protocol
        small = isinstance(body, BytesPayload) and (body.size or 0) <= _AT_ONCE
        plain = small and self.chunked is None and self._continue is None
        if not plain or protocol is None or protocol.writing_paused:
            return await super().send(conn)
        writer = StreamWriter(protocol, self.loop)
        line = f"{self.method} {self.url.raw_path_qs} HTTP/1.1"
        await writer.write_headers(line, self.headers)
        await self.write_bytes(writer, conn, self._get_content_length())
        return self.response_class(
            self.method,
            self.original_url,
            writer=None,
            continue100=None,
            timer=self._timer,
            request_info=self.request_info,
            traces=self._traces,
            loop=self.loop,
            session=self._session,
            stream_writer=writer,
        )


REQUEST = Request if sys.version_info < (3, 12) else aiohttp.ClientRequest


class Connection(ResponseHandler):
    """Goes on reading only where it had stopped.

    aiohttp asks for that after every piece of a body, and a streamed answer has a
    piece a word; ``make bench`` shows it on a message.
    """

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's
        """Go on after a pause."""
        try:
            if not (self._reading_paused or self._buffer_paused):
                return
        except AttributeError:
            # A later aiohttp may call them otherwise.
            pass
        super().resume_reading(resume_parser)
