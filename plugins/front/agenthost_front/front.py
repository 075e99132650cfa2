"""The front as the daemon uses it."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import Mountable

from .access import Tickets
from .answers import ErrorMap
from .dispatch import Dispatcher
from .entrance import Entrance
from .gate import Gate
from .layer import Layer
from .mounting import Mounted
from .openapi import Described, description
from .serve import Server
from .settings import FrontSettings
from .shutdown import EndTurns, Shutdown
from .sockets import Sockets

if TYPE_CHECKING:
    from agenthost import Host
    from quart import Quart

    from .access_log import AccessLog


class QuartFront:
    """Everything between a TCP port and the handlers of route groups.

    ``asgi`` is the layer in front of the routes, ``access`` whoever was let in,
    ``tickets`` stand for the key in a browser's WebSocket, ``panics`` counts the
    exceptions nobody expected.
    """

    def __init__(self, host: Host, settings: FrontSettings) -> None:
        self.panics = 0
        self.fingerprint = ""
        self._host = host
        self.tickets = Tickets(host.clock.monotonic)
        errors = ErrorMap(self._count_panic, host)
        self._gate = Gate(host, settings, self.tickets)
        dispatcher = Dispatcher(host, errors, self._gate.refusals.note)
        self._mounted = Mounted(errors, dispatcher)
        sockets = Sockets(host, self._gate, self._mounted, errors)
        self.asgi = Layer(self._gate, self._mounted, dispatcher, sockets, errors)
        self.access = Entrance(self._gate, self.tickets, self.asgi.streams, sockets)
        self._shutdown = Shutdown(self._gate, self.asgi, sockets)
        self._log = _access_log(host, self.asgi, settings)
        self._server = Server(self.asgi, settings, self._log)
        keyless = settings.api_key is None
        mounted = self._mounted
        self.mount(
            description(
                Described(mounted.endpoints, mounted.sockets, keyless, mounted.complete)
            )
        )

    @property
    def app(self) -> Quart:
        """The Quart application that plugins see; it is made when first asked for."""
        return self._mounted.app

    def mount(self, group: Mountable) -> None:
        """Serve a group or a Blueprint, wholly or not; only before :meth:`start`.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """
        self._mounted.add(group)

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen and serve; return the address, with the real port for port 0.

        Raises:
            Conflict: The port is taken.
            ConfigError: The address cannot be listened on.
        """
        self._gate.listen_on(host)
        self._gate.others.take()
        if self._log is not None:
            self._log.start()
        # The application waits until it is needed, unless a plugin has asked for it.
        if self._mounted.made:
            await self._mounted.ready()
        address = await self._server.start(host, port)
        if self._server.tls is not None:
            self.fingerprint = self._server.tls.fingerprint
            self._host.warnings.extend(self._server.tls.warnings)
        return address

    async def warm_up(self) -> None:
        """Import what WebSockets need.

        The Quart application, and groups that are read late, wait for the first who
        asks for something of theirs: many daemons are never asked, and they take a
        sixth of the memory.
        """
        await asyncio.to_thread(import_module, f"{__package__}.frames")

    async def drain(self, end_turns: EndTurns | None = None) -> None:
        """Refuse new work, end the turns by the callback, close streams and sockets."""
        await self._shutdown.drain(end_turns)

    async def stop(self) -> None:
        """End what still runs and stop the server; the store may close after it."""
        await self._shutdown.finish()
        await self._server.stop()
        await self._gate.refusals.stop()
        await self._mounted.stop()
        if self._log is not None:
            await self._log.stop()

    def _count_panic(self) -> None:
        self.panics += 1


def _access_log(host: Host, layer: Layer, settings: FrontSettings) -> AccessLog | None:
    if settings.access_log == "off":
        return None
    from .access_log import AccessLog

    return AccessLog(host, layer, settings.access_log)
