"""A front that calls the handlers of route groups directly, for tests of routes."""

from __future__ import annotations

import asyncio
import errno
import hmac
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote
from uuid import uuid4

import h11

from ...authorization import Refused, authorize
from ...context import Grants, Principal, PrincipalKind
from ...errors import (
    AgentHostError,
    ConfigError,
    Conflict,
    Denied,
    InvalidInput,
    PluginError,
    Unauthenticated,
    Unavailable,
)
from ...host import Authenticator, Host
from ...plugins.points import Guard, RequestCase
from ...ports.access import Credentials
from ...routes import (
    Call,
    EventStream,
    LateRoutes,
    Mountable,
    RouteGroup,
    SocketClosed,
    SocketRoute,
)
from ...secrets import Secret
from .loopback_routes import LIMIT, SOCKET, Place, Places, Plain, answer_of, told
from .loopback_wire import LoopbackSocket, Wire, close_frames, pump, while_there

if TYPE_CHECKING:
    from quart import Quart

GRACE = 5.0
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
ANONYMOUS = Principal(PrincipalKind.ANONYMOUS, "anonymous", Grants())
HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::\d{1,5})?", re.ASCII)
STREAM = ("content-type", "text/event-stream"), ("cache-control", "no-store")

log = logging.getLogger(__name__)


class LoopbackAccess:
    """Whoever was let in. It limits nobody's units."""

    ticket_seconds = 30.0

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tickets: dict[str, tuple[float, Principal]] = {}
        self.open: list[tuple[Principal, Callable[[], object]]] = []

    def ticket(self, principal: Principal) -> str:
        """Make a ticket that lets its bearer act as the principal, once."""
        ticket = secrets.token_urlsafe(32)
        until = self._host.clock.monotonic() + self.ticket_seconds
        self._tickets[ticket] = until, principal
        return ticket

    def charge(self, principal: Principal, units: int) -> None:
        """Take units from the principal's own allowance; nobody has one here."""

    def dismiss(self, principal: Principal) -> None:
        """End what is open for a principal that is one no more."""
        kept = {t: told for t, told in self._tickets.items() if told[1] != principal}
        self._tickets = kept
        for whose, end in list(self.open):
            if whose == principal:
                end()

    async def principal(
        self, client: str, call_headers: dict[str, str], ticket: str | None
    ) -> Principal:
        """Find who asks.

        Raises:
            Unauthenticated: Nobody knows the key, or there is none.
        """
        until, holder = self._tickets.pop(ticket or "", (0.0, None))
        if holder is not None and self._host.clock.monotonic() < until:
            return holder
        scheme, _, offered = call_headers.get("authorization", "").partition(" ")
        key = self._host.config.api_key
        expected = key.reveal() if key else ""
        given = offered.strip().encode("latin-1"), expected.encode()
        if expected and scheme.lower() == "bearer" and hmac.compare_digest(*given):
            return Principal(PrincipalKind.API_KEY, "api_key")
        local = ip_address(client).is_loopback
        shown = Credentials(scheme.lower(), Secret(offered), client, local)
        for _, each in self._host.registry.offered(Authenticator) if offered else ():
            async with asyncio.timeout(GRACE):
                known = await each.authenticate(self._host, shown)
            if known is not None:
                return known
        if expected or not (local or self._host.config.allow_unauthenticated_network):
            raise Unauthenticated("missing or invalid 'Authorization: Bearer <key>'")
        kind = PrincipalKind.LOOPBACK if local else PrincipalKind.OPERATOR
        return Principal(kind, "loopback" if local else "network")


class LoopbackFront:
    """Listens, and calls the handlers of route groups without an application between.

    ``FrontBackend("loopback", LoopbackFront)`` serves a daemon with it. It serves no
    Blueprint and no document of its routes, limits nobody's rate, and lets no page of
    another origin in.

    Args:
        host: The daemon.
    """

    def __init__(self, host: Host) -> None:
        self.panics = 0
        self.fingerprint = ""
        self.access = LoopbackAccess(host)
        self._host = host
        self._places = Places()
        self._listen = ""
        self._draining = False
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lasting: set[asyncio.Future[None]] = set()

    @cached_property
    def app(self) -> Quart:
        """An application that plugins may ask for; it is not served."""
        from quart import Quart

        return Quart(__name__)

    def mount(self, group: Mountable) -> None:
        """Serve a group, wholly or not; only before :meth:`start`.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """
        if isinstance(group, LateRoutes):
            group = group.load()
        if not isinstance(group, RouteGroup):
            raise PluginError(f"{group.name!r} is no route group; nothing else fits")
        self._places.add(group)

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen and serve; return the address, with the real port for port 0.

        Raises:
            Conflict: The port is taken.
            ConfigError: The address cannot be listened on.
        """
        try:
            self._server = await asyncio.start_server(self._connected, host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise Conflict(f"port {port} is taken; choose another") from error
            raise ConfigError("listen_addr: it cannot be listened on") from error
        name = self._server.sockets[0].getsockname()
        self._listen = host
        return str(name[0]), int(name[1])

    async def warm_up(self) -> None:
        """Do what the first requests would wait for: there is nothing."""

    async def drain(self, end_turns: Callable[[], Awaitable[None]] | None) -> None:
        """Refuse new work, end the turns by the callback, close streams and sockets."""
        self._draining = True
        if end_turns is not None:
            await end_turns()
        for _, end in list(self.access.open):
            end()
        if self._lasting:
            await asyncio.wait(self._lasting, timeout=GRACE)

    async def stop(self) -> None:
        """End what still runs and stop the server; the store may close after it."""
        self._draining = True
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GRACE)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        wire = Wire(reader, writer)
        try:
            await self._converse(wire)
            await wire.close()
        # A cancelled one ends well: the server would tell of it as of an error.
        except (OSError, TimeoutError, asyncio.CancelledError, h11.ProtocolError):
            pass
        finally:
            wire.abort()

    async def _converse(self, wire: Wire) -> None:
        while True:
            try:
                request = await wire.request()
            except h11.RemoteProtocolError as error:
                status = error.error_status_hint
                refused = InvalidInput("", "the request is not proper HTTP/1.1")
                refused.status = status if 400 <= status < 500 else 400
                await wire.answer(told(refused))
                return
            if request is None or not await self._served(wire, request):
                return

    async def _served(self, wire: Wire, request: h11.Request) -> bool:
        """Answer a request; tell whether the connection goes on."""
        head = request.method == b"HEAD"
        try:
            call, place, values = await self._admitted(wire, request)
            if isinstance(place.route, SocketRoute):
                socket = LoopbackSocket(wire, request, call)
                await self._converses(wire, socket, place.route, values)
                return False
            body = await wire.body(place.route.body_limit or LIMIT)
        except OSError:
            raise
        # Also what an authenticator of a plugin raises.
        except Exception as error:  # noqa: BLE001 - a plugin raises anything
            await wire.answer(self._told(error), head=head)
            return True
        work = asyncio.create_task(self._answer(place, values, call, body))
        if not await while_there(wire, work):
            return False
        answer = work.result()
        if isinstance(answer, EventStream) and head:
            await close_frames(answer.frames)
            answer = Plain(200, b"", STREAM)
        if isinstance(answer, EventStream):
            return await self._streams(wire, call, answer)
        await wire.answer(answer, head=head)
        return True

    async def _answer(
        self, place: Place, values: dict[str, Any], call: Call, body: bytes
    ) -> Plain | EventStream:
        try:
            return await answer_of(place, values, call, body)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - a handler raises anything
            return self._told(error)

    async def _streams(self, wire: Wire, call: Call, stream: EventStream) -> bool:
        await wire.begin(STREAM)
        pumping = asyncio.create_task(pump(wire, stream.frames))
        async with self._open(call.principal, pumping.cancel):
            if not await while_there(wire, pumping):
                return False
            error = None if pumping.cancelled() else pumping.exception()
            if isinstance(error, OSError):
                return False
            if error is not None:
                # Without its end the client sees that it broke off.
                self._told(error)
                return False
            await wire.end()
        return True

    async def _converses(
        self,
        wire: Wire,
        socket: LoopbackSocket,
        route: SocketRoute,
        values: dict[str, Any],
    ) -> None:
        def end() -> None:
            closing = asyncio.create_task(socket.close(1001))
            self._tasks.add(closing)
            closing.add_done_callback(self._tasks.discard)

        async with self._open(socket.call.principal, end):
            try:
                await route.handler(socket, **values)
                await socket.close()
            except SocketClosed:
                return
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001 - a handler raises anything
                plain = self._told(error)
                if not socket.accepted:
                    await wire.answer(plain)
                await socket.close(1011)

    @asynccontextmanager
    async def _open(
        self, principal: Principal, end: Callable[[], object]
    ) -> AsyncIterator[None]:
        """Keep account of what lasts, so that it can be ended."""
        entry, over = (principal, end), asyncio.get_running_loop().create_future()
        self.access.open.append(entry)
        self._lasting.add(over)
        try:
            yield
        finally:
            self.access.open.remove(entry)
            self._lasting.discard(over)
            over.set_result(None)

    async def _admitted(
        self, wire: Wire, request: h11.Request
    ) -> tuple[Call, Place, dict[str, Any]]:
        """Let a request in, or refuse it; give its route and its parameters."""
        headers = {n.decode(): v.decode("latin-1") for n, v in request.headers}
        target, _, said = request.target.decode("latin-1").partition("?")
        try:
            query = dict(parse_qsl(said, keep_blank_values=True, max_num_fields=100))
        except ValueError as error:
            raise InvalidInput("query", "more than 100 parameters") from error
        upgrades = headers.get("upgrade", "").lower() == "websocket"
        method, path = request.method.decode(), unquote(target)
        found = self._places.find(SOCKET if upgrades else method, path)
        route = found.route if isinstance(found, Place) else None
        if self._draining:
            raise Unavailable("the daemon is shutting down and takes no new work")
        case = RequestCase(method, path, wire.client, route.cost if route else 5)
        self._host.guards.check(Guard.REQUEST, case)
        self._check_origin(headers, free=method in SAFE and not upgrades)
        try:
            ticket = query.get("ticket") if upgrades else None
            principal = await self.access.principal(wire.client, headers, ticket)
        except Unauthenticated:
            if not getattr(route, "public", False):
                raise
            principal = ANONYMOUS
        if not isinstance(found, Place):
            raise found
        if not getattr(found.route, "public", False):
            authorize(principal, "route", found.route.scope)
        who = self._host, principal, wire.client, str(uuid4())
        return Call(*who, query, headers), found, found.values(path)

    def _check_origin(self, headers: Mapping[str, str], *, free: bool) -> None:
        """Refuse a name that is not ours, and pages of somebody else."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise Denied("this host is not served here")
        origin = headers.get("origin")
        page = (origin or "").partition("://")[2]
        keyless = self._host.config.api_key is None
        ours = page == host or (keyless and self._is_ours(page))
        if origin is not None and not (free or ours):
            raise Denied("this origin is not allowed")

    def _is_ours(self, host: str) -> bool:
        match = HOST.fullmatch(host)
        name = (match[1] or match[2]).lower() if match else ""
        if name in {"localhost", self._listen}:
            return bool(name)
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False

    def _told(self, error: BaseException) -> Plain:
        if isinstance(error, Refused):
            self._host.guards.on_refused(error)
        if not isinstance(error, AgentHostError):
            self.panics += 1
            log.error("unhandled error in a request", exc_info=error)
        return told(error)
