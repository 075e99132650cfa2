"""WebSockets as raw ASGI: bounded both ways, refused in JSON, ended in good order."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from agenthost import (
    AgentHostError,
    Call,
    NotFound,
    Principal,
    RateLimited,
    SocketClosed,
    authorize,
)

from .access import UNDECIDED
from .admission import who
from .answers import ErrorMap, Plain
from .asgi import Event, Receive, Scope
from .dispatch import Exchange, SocketEndpoint, read_values
from .gate import DEFAULT_COST, Gate
from .headers import SendWrapper
from .mounting import Mounted

if TYPE_CHECKING:
    from agenthost import Host

FRAME_LIMIT = 512 * 1024
WAITING_FRAMES = 16

NORMAL, GOING_AWAY, UNSUPPORTED, TOO_BIG, FAILED = 1000, 1001, 1003, 1009, 1011
REFUSED = 1008


class OpenSocket:
    """One WebSocket, as its handler gets it."""

    def __init__(
        self, call: Call, receive: Receive, sender: SendWrapper, gate: Gate
    ) -> None:
        self.call = call
        self.accepted = False
        self.closed = False
        self._receive = receive
        self._send = sender
        self._settings = gate.settings
        self._inbox: asyncio.Queue[str | None] = asyncio.Queue(WAITING_FRAMES)
        self._waiting = 0
        self._room = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._handler = asyncio.current_task()

    async def accept(self) -> None:
        """Finish the handshake."""
        await self._say({"type": "websocket.accept"}, self._settings.peer_timeout)
        self.accepted = True
        self._pump = asyncio.create_task(self._read())

    async def receive(self) -> str | None:
        """The next text frame, None when the peer has gone."""
        if self.closed and self._inbox.empty():
            return None
        text = await self._inbox.get()
        self._waiting -= len(text or "")
        self._room.set()
        return text

    async def send(self, text: str) -> None:
        """Send a text frame; SocketClosed when the peer has gone or reads nothing."""
        if self.closed:
            raise SocketClosed
        message = {"type": "websocket.send", "text": text}
        await self._say(message, self._settings.peer_timeout)

    async def close(self, code: int = NORMAL) -> None:
        """End it; idempotent."""
        if self.closed or not self.accepted:
            return
        self._ended()
        with suppress(SocketClosed):
            await self._say({"type": "websocket.close", "code": code}, 1)

    async def refuse(self) -> None:
        """End it for want of rights: what was sent and not yet taken is dropped."""
        while not self._inbox.empty():
            self._inbox.get_nowait()
        await self.close(REFUSED)
        self._ended()

    async def _say(self, message: Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._send(message)
        except (TimeoutError, ConnectionError) as error:
            self._ended()
            raise SocketClosed from error

    def release(self) -> None:
        """Stop reading; the handler has ended."""
        self.closed = True
        if self._pump is not None:
            self._pump.cancel()
        # A cancelled task keeps the frames it was cancelled in, and they hold us.
        self._pump = self._handler = None

    async def _read(self) -> None:
        while not self.closed:
            code = await self._next()
            if code is not None:
                await self.close(code)

    async def _next(self) -> int | None:
        try:
            async with asyncio.timeout(self._settings.socket_idle):
                return await self._keep(await self._receive())
        except TimeoutError:
            return GOING_AWAY

    async def _keep(self, message: Event) -> int | None:
        """Put a frame into the inbox and wait until there is room for another."""
        if message["type"] == "websocket.disconnect":
            self._ended()
            return None
        text = message.get("text")
        if text is None:
            return UNSUPPORTED
        if len(text) * 4 > FRAME_LIMIT and len(text.encode()) > FRAME_LIMIT:
            return TOO_BIG
        await self._inbox.put(text)
        self._waiting += len(text)
        while self._waiting > FRAME_LIMIT and not self.closed:
            self._room.clear()
            await self._room.wait()
        return None

    def _ended(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._inbox.full():
            self._inbox.get_nowait()
        self._inbox.put_nowait(None)
        if self._handler is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(self._settings.grace, self._handler.cancel)
            self._handler.add_done_callback(lambda _: timer.cancel())


class Sockets:
    """All WebSockets of a front."""

    def __init__(
        self, host: Host, gate: Gate, mounted: Mounted, errors: ErrorMap
    ) -> None:
        self.open: set[OpenSocket] = set()
        self._host = host
        self._gate = gate
        self._mounted = mounted
        self._errors = errors
        self._per_client: Counter[str] = Counter()
        self._refusals: set[asyncio.Task[None]] = set()

    async def serve(
        self, exchange: Exchange, scope: Scope, receive: Receive, sender: SendWrapper
    ) -> None:
        """Take an upgrade, or refuse it with a JSON error."""
        await receive()
        try:
            endpoint, values = await self._enter(exchange, scope)
        except Exception as error:  # noqa: BLE001 - every refusal becomes an answer
            self._gate.refusals.note(exchange, error)
            plain = self._errors.answer(error, exchange.request_id)
            await _refuse(plain, sender)
            return
        socket = OpenSocket(exchange.call(self._host), receive, sender, self._gate)
        self._per_client[exchange.client] += 1
        self.open.add(socket)
        try:
            await self._handle(endpoint, socket, values, sender)
        finally:
            self.open.discard(socket)
            self._per_client -= Counter({exchange.client: 1})
            socket.release()

    async def end(self) -> None:
        """Close all of them: the daemon is going away."""
        await asyncio.gather(*(socket.close(GOING_AWAY) for socket in self.open))

    def dismiss(self, principal: Principal) -> None:
        """Close those of a principal that is one no more."""
        for socket in self.open:
            if who(socket.call.principal) == who(principal):
                refusal = asyncio.create_task(socket.refuse())
                self._refusals.add(refusal)
                refusal.add_done_callback(self._refusals.discard)

    async def _enter(
        self, exchange: Exchange, scope: Scope
    ) -> tuple[SocketEndpoint, dict[str, object]]:
        gate = self._gate
        if self._mounted.late:
            await self._mounted.complete_for(exchange.path)
        match = self._mounted.find_socket(exchange.path)
        exchange.found = match[0] if match is not None else None
        route = match[0].route if match is not None else None
        cost = route.cost if route is not None else DEFAULT_COST
        origins = route.origins if route is not None else ()
        gate.admit(exchange, scope, cost, origins)
        ticket = exchange.query.pop("ticket", None)
        exchange.principal = gate.access.identify_socket(
            exchange.client, exchange.headers, ticket
        )
        if exchange.principal is UNDECIDED:
            await gate.ask(exchange, cost)
        else:
            gate.charge(exchange, cost)
        if match is None:
            raise self._missing(exchange.path)
        if self._per_client[exchange.client] >= gate.settings.sockets_per_client:
            raise RateLimited("too many open WebSockets from your address; close some")
        authorize(exchange.principal, "route", match[0].route.scope)
        values = read_values(match[0].converters, match[1])
        # Last, so that a mistake does not cost a ticket; nothing was awaited since it
        # was found good (only keys are asked about), so it lets in one.
        gate.access.redeem(ticket)
        return match[0], values

    def _missing(self, path: str) -> NotFound:
        if self._mounted.find("GET", path) is None:
            return NotFound("WebSocket", path)
        return NotFound("WebSocket", f"{path}; it is served without an upgrade")

    async def _handle(
        self,
        endpoint: SocketEndpoint,
        socket: OpenSocket,
        values: dict[str, object],
        sender: SendWrapper,
    ) -> None:
        try:
            await endpoint.route.handler(socket, **values)
        except SocketClosed:
            return
        except Exception as error:  # noqa: BLE001 - the error map decides
            plain = self._errors.answer(error, socket.call.request_id)
            if not socket.accepted:
                await _refuse(plain, sender)
            await socket.close(FAILED)
        else:
            if not socket.accepted:
                silent = AgentHostError("the WebSocket was not accepted")
                await _refuse(self._errors.answer(silent, ""), sender)
            await socket.close()


async def _refuse(plain: Plain, sender: SendWrapper) -> None:
    start = {"type": "websocket.http.response.start", "status": plain.status}
    length = (b"content-length", b"%d" % len(plain.body))
    with suppress(ConnectionError):
        await sender({**start, "headers": [*plain.headers, length]})
        await sender({"type": "websocket.http.response.body", "body": plain.body})
