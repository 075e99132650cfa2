"""The one ASGI callable in front of everything.

In this order: request id, response headers, body limit, request guards, host and
origin, access rule; then the route, served here or by the Quart application.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agenthost import LOG_FIELDS, EventStream, authorize, new_id

from .access import UNDECIDED
from .answers import ErrorMap, Plain, other_method, socket_only
from .asgi import Event, Receive, Scope, Send
from .bodies import (
    BufferedReceive,
    check_coding,
    check_length,
    discard,
    has_body,
    patience,
    read,
)
from .dispatch import EXCHANGE, Dispatcher, Endpoint, Exchange
from .gate import DEFAULT_COST, Gate, open_exchange, show_key
from .headers import SendWrapper
from .mounting import Mounted
from .origins import is_preflight
from .sockets import Sockets
from .streams import STREAM_HEADERS, DisconnectWatcher, Streams, close_frames

Match = tuple[Endpoint, list[str]]

# A handler that takes longer is watched for a client that leaves.
_WATCH_AFTER = 0.05


class Layer:
    """The front's ASGI application.

    Args:
        gate: The rules every request meets first.
        mounted: The routes and the Quart application behind them.
        dispatcher: What runs the handlers.
        sockets: The WebSockets.
        errors: The error map.
    """

    def __init__(
        self,
        gate: Gate,
        mounted: Mounted,
        dispatcher: Dispatcher,
        sockets: Sockets,
        errors: ErrorMap,
    ) -> None:
        self.running: dict[asyncio.Task[None], BufferedReceive | None] = {}
        self.streams = Streams(gate.settings.keep_alive)
        self._gate = gate
        self._mounted = mounted
        self._dispatcher = dispatcher
        self._sockets = sockets
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an HTTP request or a WebSocket."""
        request_id = new_id()
        # Inherited by every task that the request starts.
        LOG_FIELDS.set({"request_id": request_id})
        sender = SendWrapper(send, scope["path"], request_id)
        exchange = open_exchange(scope, request_id)
        task = asyncio.current_task()
        if task is not None:
            self.running[task] = None
        try:
            if scope["type"] == "websocket":
                await self._sockets.serve(exchange, scope, receive, sender)
            else:
                await self._http(exchange, scope, receive, sender)
        finally:
            if task is not None:
                del self.running[task]
            # A cancelled task holds this frame: its name would make a ring.
            del task

    async def _http(
        self, exchange: Exchange, scope: Scope, receive: Receive, sender: SendWrapper
    ) -> None:
        match = self._mounted.find(exchange.method, exchange.path)
        if self._mounted.late and not self._mounted.is_alone(match):
            await self._mounted.complete_for(exchange.path)
            match = self._mounted.find(exchange.method, exchange.path)
        try:
            outcome = self._enter(exchange, scope, match, sender)
            if exchange.principal is UNDECIDED:
                await self._gate.ask(exchange, _cost(match))
            if outcome is None:
                outcome = self._misfit(exchange, match)
            if outcome is None and has_body(exchange):
                limit = self._limit(match)
                seconds = patience(self._gate.settings, exchange, limit)
                body = await read(receive, limit, seconds)
                if body is None:
                    return
                exchange.body = body
        except Exception as error:  # noqa: BLE001 - every refusal becomes an answer
            route = match[0].route if match is not None else None
            self._gate.refusals.note(exchange, error)
            outcome = self._errors.answer(error, exchange.request_id, route)
        if outcome is not None:
            await self._refuse(exchange, outcome, receive, sender)
        elif match is not None and match[0].route.direct:
            await self._direct(exchange, match, receive, sender)
        else:
            await self._quart(exchange, scope, receive, sender)

    def _enter(
        self, exchange: Exchange, scope: Scope, match: Match | None, sender: SendWrapper
    ) -> Plain | None:
        gate, route = self._gate, match[0].route if match is not None else None
        if match is not None:
            exchange.found, exchange.texts = match
        if route is not None and route.id_header:
            name = route.id_header.encode()
            sender.extra.append((name, exchange.request_id.encode()))
        sender.extra += gate.origins.cors(exchange.headers)
        check_length(exchange, self._limit(match))
        gate.admit(exchange, scope, _cost(match))
        if is_preflight(exchange.method, exchange.headers):
            return gate.origins.preflight(exchange.headers)
        identify = gate.access.identify
        if route is not None and route.key_header:
            show_key(exchange, route.key_header)
        if route is not None and route.public:
            identify = gate.access.identify_public
        exchange.principal = identify(exchange.client, exchange.headers)
        return None

    def _misfit(self, exchange: Exchange, match: Match | None) -> Plain | None:
        if match is not None and match[0].quart_name is not None:
            # Our own routes are authorized where their handler is called.
            authorize(exchange.principal, "route", match[0].route.scope)
        check_coding(exchange)
        if match is not None:
            return None
        if self._mounted.find_socket(exchange.path):
            return socket_only(exchange.method, exchange.path)
        methods = self._mounted.methods(exchange.path)
        return other_method(exchange.method, exchange.path, methods)

    def _limit(self, match: Match | None) -> int:
        own = match[0].route.body_limit if match is not None else None
        return own if own is not None else self._gate.settings.body_limit

    async def _direct(
        self, exchange: Exchange, match: Match, receive: Receive, sender: SendWrapper
    ) -> None:
        outcome: Plain | EventStream | None = None
        with DisconnectWatcher(receive, _WATCH_AFTER):
            outcome = await self._dispatcher.perform(match[0], exchange, match[1])
        if isinstance(outcome, EventStream):
            await self._stream(exchange, outcome, receive, sender)
        elif outcome is not None:
            await send_plain(exchange, outcome, sender)

    async def _quart(
        self, exchange: Exchange, scope: Scope, receive: Receive, sender: SendWrapper
    ) -> None:
        buffered = BufferedReceive(exchange.body, receive)
        scope[EXCHANGE] = exchange
        task = asyncio.current_task()
        if task is not None:
            self.running[task] = buffered

        async def unless_stream(message: Event) -> None:
            if exchange.stream is None:
                await sender(message)

        try:
            app: Any = await self._mounted.ready()
            await app(scope, buffered, unless_stream)
            if task is not None:
                self.running[task] = None
        except Exception as error:  # noqa: BLE001 - also the framework's own faults
            plain = self._errors.answer(error, exchange.request_id)
            if not sender.started:
                await send_plain(exchange, plain, sender)
        if exchange.stream is None:
            return
        if buffered.gone:
            await close_frames(exchange.stream.frames)
        else:
            await self._stream(exchange, exchange.stream, receive, sender)

    async def _stream(
        self,
        exchange: Exchange,
        stream: EventStream,
        receive: Receive,
        sender: SendWrapper,
    ) -> None:
        start = {"type": "http.response.start", "status": 200}
        try:
            with DisconnectWatcher(receive, 0):
                await sender({**start, "headers": STREAM_HEADERS})
                if exchange.method == "HEAD":
                    await sender({"type": "http.response.body", "body": b""})
                else:
                    await self.streams.serve(stream.frames, sender, exchange.admission)
        except Exception as error:  # noqa: BLE001 - the answer has begun: cut it
            self._errors.panic(error, exchange.request_id)
        finally:
            await close_frames(stream.frames)

    async def _refuse(
        self, exchange: Exchange, plain: Plain, receive: Receive, sender: SendWrapper
    ) -> None:
        if not has_body(exchange):
            await send_plain(exchange, plain, sender)
            return
        await send_plain(exchange, plain, sender, more=True)
        await discard(receive)
        await sender({"type": "http.response.body", "body": b""})


async def send_plain(
    exchange: Exchange, plain: Plain, sender: SendWrapper, *, more: bool = False
) -> None:
    """Send a whole answer; with ``more`` its end is left to the caller."""
    body = b"" if exchange.method == "HEAD" else plain.body
    headers = plain.headers
    if plain.status != 204:
        headers = [*headers, (b"content-length", b"%d" % len(plain.body))]
    start = {"type": "http.response.start", "status": plain.status}
    await sender({**start, "headers": headers})
    await sender({"type": "http.response.body", "body": body, "more_body": more})


def _cost(match: Match | None) -> int:
    return match[0].route.cost if match is not None else DEFAULT_COST
