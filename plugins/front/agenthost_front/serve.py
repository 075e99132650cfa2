"""Hypercorn's protocols inside our process, on a socket we opened."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from wsgiref.handlers import format_date_time

from agenthost import new_id
from hypercorn.config import Config

from .asgi import ASGIApp, Headers
from .connection import Site
from .connections import Connections
from .headers import CONSTANT, NO_STORE, answered_by_layer
from .lean import Silent
from .listening import Door, listen, raise_descriptor_limit
from .settings import FrontSettings
from .sockets import FRAME_LIMIT
from .worker import Worker

if TYPE_CHECKING:
    from .access_log import AccessLog
    from .tls import Tls

# Of the descriptors of the process; the rest is for files and for calls to others.
_SHARE = 0.8
# Requests were ended before the server stops; what is left has had its time.
_PATIENCE = 0.2


class ServerConfig(Config):
    """Hypercorn's settings; its own answers carry our headers too."""

    def __init__(self, settings: FrontSettings) -> None:
        self.include_server_header = False
        self._log: Any = Silent()
        self.websocket_max_message_size = FRAME_LIMIT
        self.websocket_ping_interval = settings.socket_ping
        self._date: tuple[int, bytes] = (0, b"")

    def response_headers(self, protocol: str) -> Headers:  # noqa: ARG002 - Hypercorn's
        """What Hypercorn adds: the date, and all of ours where the layer was not."""
        date = (b"date", self._now())
        if answered_by_layer.get():
            return [date]
        return [date, *CONSTANT, NO_STORE, (b"x-request-id", new_id().encode())]

    def _now(self) -> bytes:
        second = int(time.time())
        if self._date[0] != second:
            self._date = (second, format_date_time(second).encode("ascii"))
        return self._date[1]


class Server:
    """Serves an application on a port until it is told to stop."""

    def __init__(
        self, app: ASGIApp, settings: FrontSettings, log: AccessLog | None = None
    ) -> None:
        self._app = _behind_proxies(app if log is None else log, settings)
        self._log = log
        self._settings = settings
        self.tls: Tls | None = None
        self._site: Site | None = None
        self._door: Door | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen and serve.

        Raises:
            Conflict: The port is taken.
            ConfigError: The address cannot be listened on.
        """
        settings = self._settings
        if settings.tls is not None:
            from .tls import read_tls

            self.tls = await asyncio.to_thread(read_tls, *settings.tls, time.time())
        listener = await asyncio.to_thread(listen, host, port, settings.peer_timeout)
        address = listener.getsockname()[:2]
        descriptors = raise_descriptor_limit()
        most = settings.connections or int(descriptors * _SHARE)
        self._site = Site(
            self._app,
            ServerConfig(settings),
            Worker(),
            Connections(
                most, settings.connections_per_address, settings.connection_idle
            ),
            None if self._log is None else self._log.refused,
            self.tls.context if self.tls is not None else None,
            settings.peer_timeout,
        )
        self._door = Door(listener, self._site)
        self._door.open()
        return str(address[0]), int(address[1])

    async def stop(self) -> None:
        """Close what is idle, end what is not, and wait for the end."""
        if self._door is None or self._site is None:
            return
        await self._door.close()
        await self._site.worker.terminated.set()
        await self._site.connections.close(_PATIENCE, self._settings.grace + 1)
        self._door = None


def _behind_proxies(app: ASGIApp, settings: FrontSettings) -> ASGIApp:
    if not settings.trusted_proxies:
        return app
    from .forwarded import Forwarded

    return Forwarded(app, settings.trusted_proxies, settings.forwarded_header)
