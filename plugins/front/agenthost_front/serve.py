"""Hypercorn inside our process, on a socket we opened."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from uuid import uuid4
from wsgiref.handlers import format_date_time

from agenthost import ConfigError, Conflict
from hypercorn.asyncio import serve
from hypercorn.config import Config

from .asgi import Event, Headers, Receive, Scope, Send
from .headers import CONSTANT, NO_STORE, answered_by_layer
from .layer import Layer
from .settings import FrontSettings
from .sockets import FRAME_LIMIT

_BACKLOG = 1024


class ServerConfig(Config):
    """Hypercorn's settings; its own answers carry our headers too."""

    def __init__(self, settings: FrontSettings, listener: socket.socket) -> None:
        self.bind = [f"fd://{listener.detach()}"]
        self.backlog = _BACKLOG
        self.include_server_header = False
        self.accesslog = None
        self.errorlog = logging.getLogger("agenthost.front.server")
        self.keep_alive_timeout = 20.0
        # Requests were ended before; what is left are pings that still sleep.
        self.graceful_timeout = 0.2
        self.h11_max_incomplete_size = 16 * 1024
        self.websocket_max_message_size = FRAME_LIMIT
        self.websocket_ping_interval = settings.socket_ping
        self._date: tuple[int, bytes] = (0, b"")

    def response_headers(self, protocol: str) -> Headers:  # noqa: ARG002 - Hypercorn's
        """What Hypercorn adds: the date, and all of ours where the layer was not."""
        date = (b"date", self._now())
        if answered_by_layer.get():
            return [date]
        return [date, *CONSTANT, NO_STORE, (b"x-request-id", str(uuid4()).encode())]

    def _now(self) -> bytes:
        second = int(time.time())
        if self._date[0] != second:
            self._date = (second, format_date_time(second).encode("ascii"))
        return self._date[1]


def listen(host: str, port: int, peer_timeout: float) -> socket.socket:
    """Open the listening socket; port 0 takes a free one.

    Raises:
        Conflict: The port is taken.
        ConfigError: The address cannot be listened on.
    """
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise ConfigError(f"listen_addr: {host!r} has no address") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Without it a peer that never reads holds its task for ever.
        timeout = int(peer_timeout * 1000)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _refused(error, host, port) from error
    return listener


def _refused(error: OSError, host: str, port: int) -> ConfigError | Conflict:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"port {port} of {host} is taken; stop what uses it or set listen_addr"
        )
    reason = errno.errorcode.get(error.errno or 0, "error")
    return ConfigError(f"listen_addr: cannot listen on {host} port {port} ({reason})")


class Server:
    """A Hypercorn that runs until it is told to stop."""

    def __init__(self, layer: Layer, settings: FrontSettings) -> None:
        self._layer = layer
        self._settings = settings
        self._stop = asyncio.Event()
        self._started = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen and serve; return once requests are answered.

        Raises:
            Conflict: The port is taken.
            ConfigError: The address cannot be listened on.
        """
        listener = await asyncio.to_thread(
            listen, host, port, self._settings.peer_timeout
        )
        address = listener.getsockname()[:2]
        config = ServerConfig(self._settings, listener)
        app: object = self._app
        self._task = asyncio.create_task(
            serve(app, config, shutdown_trigger=self._stop.wait, mode="asgi")  # type: ignore[arg-type]  # its types are TypedDicts
        )
        started = asyncio.create_task(self._started.wait())
        await asyncio.wait((self._task, started), return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._task.done():
            await self._task
        return str(address[0]), int(address[1])

    async def stop(self) -> None:
        """Close what is idle, end what is not, and wait for the end."""
        self._stop.set()
        if self._task is None:
            return
        await asyncio.wait((self._task,), timeout=self._settings.grace + 1)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._layer(scope, receive, send)
            return

        async def noting(message: Event) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._started.set()

        await self._layer(scope, receive, noting)
