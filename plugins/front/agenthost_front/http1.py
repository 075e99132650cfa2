"""HTTP/1.1 as Hypercorn speaks it, made strict, and its own refusals made JSON.

A proxy in front that reads a request differently than we do can be made to pass on a
second request inside the first. So what h11 forgives is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import h11
from hypercorn.events import Event as WireEvent
from hypercorn.events import RawData
from hypercorn.protocol.events import Request, StreamClosed
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol, H11WSConnection
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.typing import ConnectionState
from hypercorn.utils import build_and_validate_headers, suppress_body

from .answers import send_whole, server_error
from .asgi import Event, Headers
from .headers import ALWAYS, LINES

if TYPE_CHECKING:
    from .connection import Connection, Site
    from .frames import SocketStream

HEAD_LIMIT = 16 * 1024
ONE_WRITE = 64 * 1024
_HEAD_END = re.compile(rb"\n\r?\n")
_LOOSE = re.compile(rb"(?<!\r)\n|\n[ \t]")
ONCE = (b"authorization", b"content-type", b"host", b"origin", b"x-api-key")


class Peers(NamedTuple):
    """The two ends of a connection, each an address and a port."""

    client: tuple[str, int]
    server: tuple[str, int]


class Head(NamedTuple):
    """The head of an answer, and those of its lines that never change."""

    response: h11.Response
    constant: bytes


class StrictWire(h11.Connection):
    """h11 without what it forgives; ``fault`` and ``method`` tell what was refused."""

    fault = ""
    method = b""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Read on.

        Raises:
            RemoteProtocolError: The peer does not speak proper HTTP/1.1.
        """
        if self.their_state is h11.IDLE:
            self._check_lines(self.trailing_data[0])
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            # One of its frames holds the error: a ring that would keep all of them.
            raise error.with_traceback(None) from None
        # An abstract base makes isinstance ask in Python; nothing derives from this.
        if type(event) is h11.Request:
            self._check(event)
        return event

    def _check_lines(self, received: bytes) -> None:
        blank = _HEAD_END.search(received)
        if blank is None:
            return
        # h11 measures only a head that comes in pieces.
        if blank.end() > HEAD_LIMIT:
            raise h11.RemoteProtocolError("too long", error_status_hint=431)
        if _LOOSE.search(received, 0, blank.end()):
            self._refuse("every header is one line, and every line ends with CR LF")

    def _check(self, request: h11.Request) -> None:
        self.method = request.method
        names = [name for name, _ in request.headers]
        if request.http_version not in {b"1.1", b"1.0"}:
            self._refuse("the version is not HTTP/1.1; others are not served here")
        if not request.method.isupper():
            self._refuse("a method is written in capitals")
        for name in ONCE:
            if names.count(name) > 1:
                self._refuse(f"{name.decode()}: given more than once; send it once")
        if b"transfer-encoding" in names:
            if b"content-length" in names:
                self._refuse("content-length: not beside transfer-encoding; send one")
            if request.http_version == b"1.0":
                self._refuse("transfer-encoding: HTTP/1.0 has none; use HTTP/1.1")

    def _refuse(self, fault: str) -> None:
        self.fault = fault
        raise h11.RemoteProtocolError(fault)


class Http1(H11Protocol):
    """One connection's HTTP/1.1; an upgrade leads to a WebSocket and nothing else."""

    connection: h11.Connection | H11WSConnection

    def __init__(
        self,
        site: Site,
        tasks: Connection,
        peers: Peers,
        send: Callable[[WireEvent], Awaitable[None]],
    ) -> None:
        super().__init__(
            cast("Any", site.app),
            site.config,
            cast("Any", site.worker),
            cast("Any", tasks),
            ConnectionState({}),
            site.tls is not None,
            peers.client,
            peers.server,
            send,
        )
        self.connection = StrictWire()
        self._refused = site.refused

    async def _check_protocol(self, event: h11.Request) -> None:
        """Go on: Hypercorn would turn to HTTP/2 here, which needs TLS with us."""

    def last_words(self) -> bytes:
        """Say nothing: HTTP/1.1 has no word for an end between two requests."""
        return b""

    async def _create_stream(self, request: h11.Request) -> None:
        kind: type[SocketStream | RequestStream] = RequestStream
        upgrade = _is_upgrade(request)
        if upgrade:
            # A start does without it; the warm-up imports it.
            from .frames import SocketStream

            kind = SocketStream
        self.stream = kind(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        if upgrade:
            self.connection = H11WSConnection(cast("h11.Connection", self.connection))
        elif isinstance(self.stream, RequestStream):
            self.stream.http = self
        await self.stream.handle(
            Request(
                STREAM_ID,
                list(request.headers),
                request.http_version.decode(),
                request.method.decode(),
                request.target,
                self.connection_state,
            )
        )
        self.keep_alive_requests += 1

    def head(self, status: int, headers: Headers) -> Head:
        """Make the head of an answer; of its constant lines nothing is looked at.

        Raises:
            LocalProtocolError: It is not what HTTP/1.1 allows.
        """
        own = [pair for pair in headers if pair not in ALWAYS]
        known = len(headers) - len(own) == len(ALWAYS)
        told = build_and_validate_headers(own if known else headers)
        told += self.config.response_headers("h11")
        if self.keep_alive_requests >= self.config.keep_alive_max_requests:
            told.append((b"connection", b"close"))
        response = h11.Response(status_code=status, headers=told)
        return Head(response, LINES if known else b"")

    async def send_head(self, head: Head, whole: bytes | None = None) -> None:
        """Send a head; a whole body with it: each write is a call of the system."""
        wire = cast("StrictWire", self.connection)
        try:
            pieces = wire.send_with_data_passthrough(head.response) or []
            # Behind the status line.
            pieces.insert(1, head.constant)
            if whole is not None:
                pieces += wire.send(h11.Data(data=whole)), wire.send(h11.EndOfMessage())
        except h11.LocalProtocolError:
            if wire.their_state is not h11.ERROR:
                raise
        else:
            await self.send(RawData(b"".join(pieces)))

    async def _send_error_response(self, status_code: int) -> None:
        wire = cast("StrictWire", self.connection)
        if self._refused is not None:
            method = wire.method.decode("latin-1")
            self._refused((self.client or ("",))[0], method, status_code)
        plain = server_error(status_code, wire.fault)
        headers = [*plain.headers, *self.config.response_headers("h11")]
        await self._send_h11_event(
            h11.Response(status_code=status_code, headers=headers)
        )
        if wire.method != b"HEAD":
            await self._send_h11_event(h11.Data(data=plain.body))
        await self._send_h11_event(h11.EndOfMessage())


class RequestStream(HTTPStream):
    """A request; an application that never answers is answered for in JSON.

    The head of an answer that tells its length waits for the body: where that comes
    whole, both are one write.
    """

    http: Http1
    _held: tuple[Event, Head] | None = None

    async def app_send(self, message: Any) -> None:
        """Send what the application has to say; None is its end."""
        kind = None if message is None else message["type"]
        held, self._held = self._held, None
        if held is not None:
            start, head = held
            if kind == "http.response.body" and not self.closed:
                body, more = message.get("body", b""), message.get("more_body", False)
                # A long body is not copied behind its head.
                if not more and len(body) <= ONE_WRITE:
                    await self._answer(head, bytes(body))
                    return
            await self._begin(start, head)
        if kind == "http.response.start" and self.state is ASGIHTTPState.REQUEST:
            headers = message["headers"]
            head = self.http.head(int(message["status"]), headers)
            if b"content-length" in dict(headers):
                self._held = message, head
            else:
                await self._begin(message, head)
            return
        await super().app_send(message)

    async def _begin(self, start: Event, head: Head) -> None:
        self.response = cast("Any", start)
        await self.http.send_head(head)
        self.state = ASGIHTTPState.RESPONSE

    async def _answer(self, head: Head, body: bytes) -> None:
        bare = suppress_body(self.scope["method"], head.response.status_code)
        self.state = ASGIHTTPState.CLOSED
        await self.http.send_head(head, b"" if bare else body)
        await self.send(StreamClosed(self.stream_id))

    async def _send_error_response(self, status_code: int) -> None:
        head = self.scope["method"] == "HEAD"
        await send_whole(self, server_error(status_code), head=head)
        self.state = ASGIHTTPState.CLOSED


def _is_upgrade(request: h11.Request) -> bool:
    if request.method != b"GET":
        return False
    upgrade = connection = b""
    for name, value in request.headers:
        if name == b"upgrade":
            upgrade = value.lower()
        elif name == b"connection":
            connection = value.lower()
    tokens = [token.strip() for token in connection.split(b",")]
    return upgrade == b"websocket" and b"upgrade" in tokens
