"""How a plugin says what it serves: a route group of typed handlers.

A handler is ``async def handler(call, body, agent_id)``: the call, the validated body
where the route has a body model, and the path's parameters by name, converted to what
their annotation says (``UUID``, ``int`` or ``str``). A parameter named ``query`` gets
the validated query where the route has a query model. A handler returns an
:data:`Answer` and raises errors of ``agenthost.errors``; status codes, access and JSON
are the kernel's work. In a path, ``<name>`` stands for one segment and ``<path:name>``
for all that is left.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agenthost_values.value_class import value_class
from pydantic import BaseModel

from .context import Context, Principal
from .errors import AgentHostError

if TYPE_CHECKING:
    from .host import Host


@value_class
class Call:
    """One request as a handler sees it. ``query`` holds each parameter's last value."""

    host: Host
    principal: Principal
    client: str
    request_id: str
    query: Mapping[str, str]
    headers: Mapping[str, str]

    @property
    def context(self) -> Context:
        """The context of what this request causes."""
        fields = {"request_id": self.request_id}
        if "traceparent" in self.headers:
            traced = ("traceparent", "tracestate")
            fields |= {each: self.headers.get(each, "") for each in traced}
        return Context(self.principal, log_fields=fields)


@value_class
class Reply:
    """An answer that is not plain 200 JSON.

    ``body`` is JSON-encoded unless it is bytes; then ``headers`` names its type.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@value_class
class EventStream:
    """A ``text/event-stream`` answer: ready-made frames, each ended by a blank line.

    Comments keep it alive every 15 s. When the client leaves, the iterator is closed
    (``aclose``), and with it what it holds.
    """

    frames: AsyncIterator[bytes]


class HeldFrames:
    """Frames that hold something, which is let go when they are closed, read or not.

    A generator of which nothing was read never gets to a ``finally`` of its own: a
    client that leaves before the first frame would leave behind what it holds.

    Args:
        frames: What is read.
        leave: Called when they are closed.
    """

    def __init__(
        self, frames: AsyncGenerator[bytes, None], leave: Callable[[], object]
    ) -> None:
        self._frames = frames
        self._leave = leave

    def __aiter__(self) -> HeldFrames:
        """Itself."""
        return self

    async def __anext__(self) -> bytes:
        """Give the next frame."""
        return await anext(self._frames)

    async def aclose(self) -> None:
        """Let go."""
        self._leave()
        await self._frames.aclose()


Answer = Mapping[str, Any] | Sequence[Any] | BaseModel | Reply | EventStream
ErrorBody = Callable[["Host", AgentHostError], Mapping[str, Any] | Reply]
Handler = Callable[..., Awaitable[Answer]]
HandlerMark = Callable[[Handler], Handler]


class SocketClosed(Exception):
    """The peer of a WebSocket has gone, or reads nothing."""


class Socket(Protocol):
    """An accepted-or-not WebSocket, as a socket handler gets it."""

    call: Call

    async def accept(self) -> None:
        """Finish the handshake."""

    async def receive(self) -> str | None:
        """The next text frame, None when the peer has gone."""

    async def send(self, text: str) -> None:
        """Send a text frame; SocketClosed when the peer has gone or reads nothing."""

    async def close(self, code: int = 1000) -> None:
        """End it; idempotent."""


SocketHandler = Callable[..., Awaitable[None]]
SocketMark = Callable[[SocketHandler], SocketHandler]


@value_class
class Route:
    """One route: what the layer, the router and the OpenAPI document need.

    ``status`` is that of an answer which is not a :class:`Reply`. A ``body`` of
    ``bytes`` hands the handler the body as it came, whatever its content type. For the
    document: ``media`` is the type of an answer in bytes, ``takes`` what a body of
    bytes may be (OpenAPI's media types), ``others`` the bodies of further statuses,
    ``events`` those of a stream by name, ``headers`` what a client may send besides,
    each with its meaning. ``public`` may be a function, which is asked at each request:
    where it says no of the path, there is no such route, whoever asks. ``errors``
    writes the body of an error in other words than the daemon's own, in a ``Reply``
    with headers of it too: the status stays the error's. ``key_header`` is a header
    that a key may stand in where there is no ``Authorization``; ``id_header`` names the
    request beside ``x-request-id``, and with it errors do in a field ``request_id``.
    """

    method: str
    path: str
    handler: Handler
    scope: str
    cost: int = 5
    body: type[BaseModel] | type[bytes] | None = None
    answer: Any = None
    status: int = 200
    public: bool | Callable[[Host, str], bool] = False
    direct: bool = False
    body_limit: int | None = None
    query: type[BaseModel] | None = None
    media: str = "application/json"
    takes: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[int, Any] = field(default_factory=dict)
    events: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    errors: ErrorBody | None = None
    key_header: str = ""
    id_header: str = ""


@value_class
class SocketRoute:
    """A WebSocket route. Errors raised before ``accept`` answer the upgrade.

    ``origins`` are further pages that may open it, where more than a browser's word
    decides what they may do.
    """

    path: str
    handler: SocketHandler
    scope: str
    cost: int = 5
    origins: tuple[str, ...] = ()


@runtime_checkable
class Mountable(Protocol):
    """What ``register_routes`` offers: a route group, or a Quart Blueprint as it is."""

    @property
    def name(self) -> str:
        """What its routes are called in documents and faults."""


@value_class
class LateRoutes:
    """A group that is read when one of its paths is first asked for.

    A start need not wait for what it imports; it is read soon after it all the same.
    ``load`` gives the group of this name, whose paths are, or are below, one of
    ``paths``; none is public.
    """

    name: str
    paths: tuple[str, ...]
    load: Callable[[], RouteGroup]


class RouteGroup:
    """The routes of one plugin.

    ``scope`` is the right a principal needs (``agents:read``); ``cost`` the units the
    rate limiter takes; ``body``, ``query`` and ``answer`` the pydantic models (or, for
    ``answer``, any type pydantic can describe) of ``/openapi.json``; ``direct`` serves
    the handler without Quart, for routes whose benchmark shows the gain;
    ``body_limit`` raises the 1 MiB limit of bodies, in bytes; ``errors`` writes the
    bodies of all errors of the group, also of those before a handler is called.
    """

    def __init__(self, name: str, errors: ErrorBody | None = None) -> None:
        self.name = name
        self.errors = errors
        self.routes: list[Route] = []
        self.sockets: list[SocketRoute] = []

    def get(self, path: str, *, scope: str, **facts: Any) -> HandlerMark:
        """Serve GET (and HEAD)."""
        return self._add("GET", path, scope, facts)

    def post(self, path: str, *, scope: str, **facts: Any) -> HandlerMark:
        """Serve POST."""
        return self._add("POST", path, scope, facts)

    def put(self, path: str, *, scope: str, **facts: Any) -> HandlerMark:
        """Serve PUT."""
        return self._add("PUT", path, scope, facts)

    def patch(self, path: str, *, scope: str, **facts: Any) -> HandlerMark:
        """Serve PATCH."""
        return self._add("PATCH", path, scope, facts)

    def delete(self, path: str, *, scope: str, **facts: Any) -> HandlerMark:
        """Serve DELETE."""
        return self._add("DELETE", path, scope, facts)

    def socket(self, path: str, *, scope: str, **facts: Any) -> SocketMark:
        """Serve a WebSocket."""

        def add(handler: SocketHandler) -> SocketHandler:
            self.sockets.append(SocketRoute(path, handler, scope, **facts))
            return handler

        return add

    def _add(
        self, method: str, path: str, scope: str, facts: Mapping[str, Any]
    ) -> HandlerMark:
        def add(handler: Handler) -> Handler:
            told = {"errors": self.errors, **facts}
            self.routes.append(Route(method, path, handler, scope, **told))
            return handler

        return add
