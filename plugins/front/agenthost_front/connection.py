"""One TCP connection: bytes in, bytes out, and the tasks that serve it.

Hypercorn's own server holds a connection that its peer has closed until an idle timer
ends, leaves cycles behind it, and makes a task for each rest between two requests.
This one gives the descriptor back at once and leaves nothing for the collector.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from agenthost_values.value_class import value_class
from hypercorn.config import Config
from hypercorn.events import Closed, RawData, Updated
from hypercorn.events import Event as WireEvent

from .asgi import ASGIApp, Event, Scope
from .connections import Connections
from .http1 import Http1, Peers
from .inbox import Inbox, serve
from .worker import Worker

if TYPE_CHECKING:
    from ssl import SSLContext

    from .http2 import Http2

_HIGH_WATER = 64 * 1024
_LINGER = 1.0

_log = logging.getLogger("agenthost.front.server")


@value_class
class Site:
    """What all connections of a server share.

    ``refused`` is told of what is no proper request: client, method and status;
    ``tls`` is what connections are encrypted with; ``peer_timeout`` are the seconds
    that a peer has to take something of its answer.
    """

    app: ASGIApp
    config: Config
    worker: Worker
    connections: Connections
    refused: Callable[[str, str, int], None] | None = None
    tls: SSLContext | None = None
    peer_timeout: float = 20.0


class Connection(asyncio.Protocol):
    """A connection from its acceptance until its last task has ended.

    Args:
        site: What it serves.
        client: Address and port of the peer.
    """

    def __init__(self, site: Site, client: tuple[str, int]) -> None:
        self._site = site
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._http: Http1 | Http2
        self._reader: asyncio.Task[None]
        self._tasks: set[asyncio.Task[None]] = set()
        self._received: list[bytes] = []
        self._size = 0
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._deaf = False
        self._mute = False
        self._lost = False
        self._lingering: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """Whom it comes from."""
        return self._client[0]

    def end(self) -> None:
        """Close it; it has nothing under way."""
        self.write(self._http.last_words())
        self._deaf = self._mute = True
        self._received.clear()
        self._arrived.set()
        self._transport.close()

    def write(self, data: bytes) -> None:
        """Send without waiting; a peer that has gone is told of by the reader's end."""
        if data and not self._mute and not self._transport.is_closing():
            self._transport.write(data)

    def cancel(self) -> None:
        """End whatever it has under way, and drop what it has not sent."""
        for task in self._tasks:
            task.cancel()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read."""
        self._transport = cast("asyncio.Transport", transport)
        local = transport.get_extra_info("sockname") or ("", 0)
        peers = Peers(self._client, (str(local[0]), int(local[1])))
        self._http = _spoken(transport)(self._site, self, peers, self._send)
        self._site.connections.rest(self)
        self._reader = self._start(self._read())

    def data_received(self, data: bytes) -> None:
        """Keep what came until the reader takes it."""
        if self._deaf:
            return
        self._received.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER:
            self._transport.pause_reading()
        self._arrived.set()

    def eof_received(self) -> bool:
        """Note that nothing more comes; an answer may still be on its way."""
        self._deaf = True
        self._arrived.set()
        if self._mute:
            self._transport.close()
        # TLS knows no half of a connection: asyncio closes it whatever is said here.
        return self._site.tls is None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """End the reader, which tells the application."""
        self._deaf = self._mute = self._lost = True
        self._writable.set()
        if self._lingering is not None:
            self._lingering.cancel()
        # asyncio keeps a bound method of the transport in the transport: a ring that
        # only the collector would break. It has stopped reading by now.
        getattr(self._transport, "__dict__", {}).pop("_read_ready_cb", None)
        self._reader.cancel()
        self._settle()

    def pause_writing(self) -> None:
        """Let writers wait: the peer does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._writable.set()

    # Hypercorn's protocols start their tasks by these two.
    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        """Run a task until the connection ends."""
        self._start(work(*args))

    async def spawn_app(
        self,
        app: ASGIApp,
        config: Config,
        scope: Scope,
        send: Callable[[Event | None], Awaitable[None]],
    ) -> Callable[[Event], Awaitable[None]]:
        """Let the application serve a request; return where its messages go."""
        # A frame of a WebSocket may be large: the socket has an inbox of its own.
        inbox = Inbox(config.max_app_queue_size if scope["type"] == "http" else 1)
        self._start(serve(app, scope, inbox, send))
        return inbox.put

    async def _read(self) -> None:
        try:
            while data := await self._next():
                await self._http.handle(RawData(data))
        finally:
            await self._http.handle(Closed())

    async def _next(self) -> bytes:
        while not self._received and not self._deaf:
            self._arrived.clear()
            await self._arrived.wait()
        data = b"".join(self._received)
        self._received.clear()
        self._size = 0
        # asyncio's TLS has nothing to resume once it was cut off.
        if not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    async def _send(self, event: WireEvent) -> None:
        # Their abstract base makes isinstance ask in Python; nothing derives from them.
        kind, told = type(event), cast("Any", event)
        if kind is RawData:
            self.write(told.data)
            if not self._mute and not self._writable.is_set():
                await self._writable.wait()
        elif kind is Updated:
            if told.idle:
                self._site.connections.rest(self)
            else:
                self._site.connections.work(self)
        elif kind is Closed:
            self._close()

    def _close(self) -> None:
        """Say no more, and drop what still comes for a moment.

        Closing at once would reset a peer that is still sending, and the reset could
        overtake our last words.
        """
        if self._mute:
            return
        self._mute = True
        if self._deaf or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._deaf = True
        self._received.clear()
        self._arrived.set()
        if self._transport.is_closing():
            return
        try:
            self._transport.write_eof()
        except OSError:
            # The peer has reset it, and the transport has yet to find out.
            self._transport.abort()
            return
        self._transport.resume_reading()
        self._lingering = self._loop.call_later(_LINGER, self._transport.close)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a connection failed", exc_info=error)
            self._transport.abort()
        self._settle()

    def _settle(self) -> None:
        if self._tasks:
            return
        if self._lost:
            self._site.connections.remove(self)
            # The rings end here: the protocol holds us, and so does the frame in which
            # the reader was cancelled.
            del self._http, self._reader
        elif not self._mute:
            self._transport.close()


def _spoken(transport: asyncio.BaseTransport) -> type[Http1 | Http2]:
    """Give the protocol that was agreed on; without TLS it is HTTP/1.1."""
    tls = transport.get_extra_info("ssl_object")
    if tls is None or tls.selected_alpn_protocol() != "h2":
        return Http1
    # A start does without it; one with TLS has imported it.
    from .http2 import Http2

    return Http2
