"""HTTP/2 (RFC 9113) over TLS, by the library h2: streams, windows, and a toll.

h2 reads and writes frames and holds the protocol's rules; here are the requests, the
windows, and what may not be had for nothing. A stream that is not read holds up no
other: what arrives waits with its request, and makes room on the wire when taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.events import Event as H2Event
from h2.exceptions import H2Error, ProtocolError
from h2.settings import SettingCodes, Settings
from hypercorn.events import Closed, RawData, Updated
from hypercorn.events import Event as WireEvent
from hypercorn.protocol.events import Body, EndBody, Request, Response, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.typing import ConnectionState
from hypercorn.utils import filter_pseudo_headers

from .answers import Plain, send_whole, server_error
from .asgi import ASGIApp, Event, Headers, Scope
from .http1 import HEAD_LIMIT, ONCE, Peers
from .inbox import Inbox, serve
from .toll import Toll

if TYPE_CHECKING:
    from .connection import Connection, Site

NAME = "h2"
"""Its name when a protocol is agreed on (RFC 7301)."""
STREAMS = 100
"""Requests of one connection at once, those included that their client has reset."""
_NO_LIMIT = 1 << 40
_WINDOW = 1 << 20
# A head over HEAD_LIMIT is answered with 431; one over this ends the connection.
_MOST_HEAD = 4 * HEAD_LIMIT


class Http2:
    """One connection's HTTP/2; no WebSockets, no pushes, no priorities.

    Args:
        site: What it serves.
        tasks: Runs the application for each request.
        peers: The two ends.
        send: Takes bytes, and whether the connection rests or is to be closed.
    """

    def __init__(
        self,
        site: Site,
        tasks: Connection,
        peers: Peers,
        send: Callable[[WireEvent], Awaitable[None]],
    ) -> None:
        self._site = site
        self._tasks = tasks
        self._peers = peers
        self._send = send
        self._streams: dict[int, _Stream] = {}
        self._running = 0
        self._toll = Toll(monotonic)
        self._moved = asyncio.Event()
        self._greeted = self._closed = False
        configuration = H2Configuration(client_side=False, header_encoding=None)
        self._wire = H2Connection(configuration)
        self._wire.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS,
                SettingCodes.MAX_HEADER_LIST_SIZE: _MOST_HEAD,
                SettingCodes.ENABLE_PUSH: 0,
            },
        )

    async def handle(self, event: WireEvent) -> None:
        """Take what has arrived, or that nothing arrives any more."""
        if isinstance(event, RawData):
            if not self._closed:
                await self._received(event.data)
        elif isinstance(event, Closed):
            self._closed = True
            for stream in tuple(self._streams):
                await self._forget(stream)
            self._move()

    def last_words(self) -> bytes:
        """Say that no request is taken any more, as bytes to send."""
        return self._goodbye(ErrorCodes.NO_ERROR)

    async def _received(self, data: bytes) -> None:
        if not self._greeted:
            self._greeted = True
            self._wire.initiate_connection()
            # Of all bodies together; a few that nobody takes stop no other.
            self._wire.increment_flow_control_window(_WINDOW)
        # Before h2 looks at a single frame: looking is what would take the time.
        if not self._toll.pays(data):
            await self._end(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        try:
            events = self._wire.receive_data(data)
        except ProtocolError:
            # h2 has written the reason already.
            await self._end()
            return
        for event in events:
            await self._take(event)
        await self._flush()

    async def _take(self, event: H2Event) -> None:
        if isinstance(event, RequestReceived):
            await self._begin(event)
        elif isinstance(event, DataReceived):
            await self._body(event)
        elif isinstance(event, StreamEnded):
            if (stream := self._streams.get(event.stream_id or 0)) is not None:
                stream.whole = True
                await stream.handle(EndBody(stream.stream_id))
        elif isinstance(event, StreamReset):
            await self._forget(event.stream_id or 0)
            self._move()
        elif isinstance(event, WindowUpdated | RemoteSettingsChanged):
            self._move()
        elif isinstance(event, ConnectionTerminated):
            await self._end()

    # Requests.

    async def _begin(self, event: RequestReceived) -> None:
        number = event.stream_id or 0
        if self._running >= STREAMS or self._site.worker.terminated.is_set():
            self._reset(number, ErrorCodes.REFUSED_STREAM)
            return
        head = _Head(cast("Headers", event.headers or []))
        site, peers = self._site, self._peers
        stream = _Stream(
            cast("Any", site.app),
            site.config,
            cast("Any", site.worker),
            cast("Any", self),
            True,  # noqa: FBT003 - Hypercorn's
            peers.client,
            peers.server,
            self._stream_send,
            number,
        )
        self._streams[number] = stream
        if len(self._streams) == 1:
            await self._send(Updated(idle=False))
        if (refusal := head.refusal()) is not None:
            await self._refuse(stream, head, refusal)
            return
        if head.expects:
            self._wire.send_headers(number, [(b":status", b"100")])
        await stream.handle(
            Request(
                number,
                filter_pseudo_headers(head.headers),
                "2",
                head.method.decode(),
                head.path,
                ConnectionState({}),
            )
        )

    async def _refuse(self, stream: _Stream, head: _Head, plain: Plain) -> None:
        """Answer what no application is asked about."""
        if self._site.refused is not None:
            method = head.method.decode("latin-1")
            self._site.refused(self._peers.client[0], method, plain.status)
        stream.state = ASGIHTTPState.CLOSED
        await send_whole(stream, plain, head=head.method == b"HEAD")
        await stream.send(StreamClosed(stream.stream_id))

    async def spawn_app(
        self,
        app: ASGIApp,
        config: object,  # noqa: ARG002 - Hypercorn's streams ask for it so
        scope: Scope,
        send: Callable[[Event | None], Awaitable[None]],
    ) -> Callable[[Event], Awaitable[None]]:
        """Let the application serve a request; return where its messages go."""
        stream = cast("_Stream", cast("Any", send).__self__)
        # Hypercorn offers pushes, which no browser takes any more.
        scope["extensions"] = {}
        inbox = _Inbox(lambda size: self._taken(stream, size))
        self._running += 1
        self._tasks.spawn(self._serve, app, scope, inbox, send)
        return inbox.put

    async def _serve(
        self,
        app: ASGIApp,
        scope: Scope,
        inbox: Inbox,
        send: Callable[[Event | None], Awaitable[None]],
    ) -> None:
        try:
            await serve(app, scope, inbox, send)
        finally:
            self._running -= 1

    # Bodies that come.

    async def _body(self, event: DataReceived) -> None:
        number, data = event.stream_id or 0, event.data or b""
        stream = self._streams.get(number)
        padding = (event.flow_controlled_length or 0) - len(data)
        if stream is None:
            self._make_room(number, padding + len(data))
            return
        self._make_room(number, padding)
        stream.waiting += len(data)
        await stream.handle(Body(number, data))

    def _taken(self, stream: _Stream, size: int) -> None:
        stream.waiting -= size
        self._make_room(stream.stream_id, size)
        data = self._wire.data_to_send()
        if data and not self._closed:
            self._tasks.write(data)

    def _make_room(self, number: int, size: int) -> None:
        if size > 0 and not self._closed:
            self._wire.acknowledge_received_data(size, number)

    # Answers.

    async def _stream_send(self, event: StreamEvent) -> None:
        number = event.stream_id
        stream = self._streams.get(number)
        if stream is None or self._closed:
            return
        try:
            if isinstance(event, Response):
                headers = [(b":status", b"%d" % event.status_code), *event.headers]
                headers += self._site.config.response_headers("h2")
                self._wire.send_headers(number, headers)
                self._toll.sent()
                await self._flush()
            elif isinstance(event, Body):
                await self._send_body(number, event.data)
            elif isinstance(event, EndBody):
                self._wire.end_stream(number)
                await self._flush()
            elif isinstance(event, StreamClosed):
                await self._done(stream)
        except H2Error:
            # The stream was reset, or the peer broke a rule, while this waited.
            await self._forget(number)

    async def _send_body(self, number: int, data: bytes) -> None:
        at = 0
        while at < len(data) and number in self._streams and not self._closed:
            room = self._wire.local_flow_control_window(number)
            room = min(room, self._wire.max_outbound_frame_size)
            if room <= 0:
                await self._wait_for_room(number)
                continue
            self._wire.send_data(number, data[at : at + room])
            at += room
            self._toll.sent()
            await self._flush()

    async def _wait_for_room(self, number: int) -> None:
        """Wait until something moves; who takes nothing for long is left."""
        moved = self._moved
        try:
            async with asyncio.timeout(self._site.peer_timeout):
                await moved.wait()
        except TimeoutError:
            self._reset(number, ErrorCodes.CANCEL)
            await self._flush()
            await self._forget(number)

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def _done(self, stream: _Stream) -> None:
        number = stream.stream_id
        if stream.state is not ASGIHTTPState.CLOSED:
            # The application ended in the middle of its answer.
            self._reset(number, ErrorCodes.INTERNAL_ERROR)
        elif not stream.whole:
            # What is still to come of the body is not wanted.
            self._reset(number, ErrorCodes.NO_ERROR)
        await self._flush()
        await self._forget(number)

    # Ends.

    async def _forget(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is None:
            return
        self._make_room(number, stream.waiting)
        stream.waiting = 0
        await stream.handle(StreamClosed(number))
        await self._flush()
        if not self._streams:
            await self._send(Updated(idle=True))
            if self._site.worker.terminated.is_set():
                await self._end(ErrorCodes.NO_ERROR)

    def _reset(self, number: int, code: ErrorCodes) -> None:
        try:
            self._wire.reset_stream(number, code)
        except H2Error:
            # It has ended in the meantime.
            return

    def _goodbye(self, code: ErrorCodes) -> bytes:
        if not self._greeted or self._closed:
            return b""
        self._wire.close_connection(code)
        return self._wire.data_to_send()

    async def _end(self, code: ErrorCodes | None = None) -> None:
        if self._closed:
            return
        words = self._wire.data_to_send() if code is None else self._goodbye(code)
        self._closed = True
        if words:
            await self._send(RawData(words))
        await self._send(Closed())

    async def _flush(self) -> None:
        if not self._closed and (data := self._wire.data_to_send()):
            await self._send(RawData(data))


class _Inbox(Inbox):
    """What one application has not received yet; its window bounds it, nobody waits."""

    def __init__(self, taken: Callable[[int], None]) -> None:
        super().__init__(_NO_LIMIT)
        self._taken = taken

    async def __call__(self) -> Event:
        message = await super().__call__()
        if message["type"] == "http.request" and message["body"]:
            self._taken(len(message["body"]))
        return message


class _Stream(HTTPStream):
    """A request; ``waiting`` bytes of its body have arrived and not been taken."""

    waiting = 0
    whole = False
    # Hypercorn's reads it when a stream ends that no application was asked about.
    app_put: Any = None

    async def _send_error_response(self, status_code: int) -> None:
        head = self.scope["method"] == "HEAD"
        self.state = ASGIHTTPState.CLOSED
        await send_whole(self, server_error(status_code), head=head)


class _Head:
    """The head of a request, and whether it is refused as HTTP/1.1's would be."""

    def __init__(self, headers: Headers) -> None:
        self.headers = headers
        named = dict(headers)
        self.method = named.get(b":method", b"")
        self.path = named.get(b":path", b"")
        self.expects = named.get(b"expect", b"").lower() == b"100-continue"

    def refusal(self) -> Plain | None:
        """Give the answer to what is refused, else None."""
        if sum(len(name) + len(value) + 4 for name, value in self.headers) > HEAD_LIMIT:
            return server_error(431)
        if self.method == b"CONNECT":
            return server_error(501, "method CONNECT: nothing is tunnelled here")
        if not self.method.isupper() or not self.method.isascii():
            return server_error(400, "a method is written in capitals")
        plain = self.path.isascii() and not self.path.translate(None, _VISIBLE)
        if not plain or not self.path.startswith(b"/"):
            return server_error(400, ":path: begins with / and is ASCII; encode it")
        names = [name for name, _ in self.headers]
        for name in ONCE:
            if names.count(name) > 1:
                text = f"{name.decode()}: given more than once; send it once"
                return server_error(400, text)
        return None


_VISIBLE = bytes(range(0x21, 0x7F))
