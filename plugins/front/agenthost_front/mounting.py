"""Route groups become a tree for the layer and blueprints for Quart."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import PluginError, RouteGroup

from .answers import ErrorMap
from .dispatch import Bound, BoundSocket, Dispatcher, bind, bind_socket
from .paths import PathTree, Template

if TYPE_CHECKING:
    from quart import Quart

SOCKET = "WEBSOCKET"


class Mounted:
    """Every route of a front, and the Quart application that serves most of them.

    The application is made when it is first needed: a start, and the routes that are
    served without it, need not wait for its import.
    """

    def __init__(self, errors: ErrorMap, dispatcher: Dispatcher) -> None:
        self.bound: list[Bound] = []
        self._errors = errors
        self._dispatcher = dispatcher
        self._groups: list[tuple[str, list[Bound]]] = []
        self._app: Quart | None = None
        self._ready: Quart | None = None
        self._starting = asyncio.Lock()
        self._routes: PathTree[Bound] = PathTree()
        self._sockets: PathTree[BoundSocket] = PathTree()
        self._owners: dict[tuple[str, str], str] = {}

    @property
    def made(self) -> bool:
        """Whether the application has been asked for."""
        return self._app is not None

    @property
    def app(self) -> Quart:
        """The application; it is made here at the first call."""
        if self._app is None:
            from .app import blueprint, create_app

            self._app = create_app(self._errors)
            for name, routes in self._groups:
                self._app.register_blueprint(blueprint(name, routes, self._dispatcher))
        return self._app

    async def ready(self) -> Quart:
        """Give the application, started; what it imports is imported off the loop."""
        if self._ready is None:
            async with self._starting:
                if self._ready is None:
                    await asyncio.to_thread(import_module, f"{__package__}.app")
                    await self.app.startup()
                    self._ready = self.app
        return self._ready

    async def stop(self) -> None:
        """End what the application has running."""
        if self._ready is not None:
            await self._ready.shutdown()

    def find(self, method: str, path: str) -> tuple[Bound, list[str]] | None:
        """Find the route of a request; HEAD is served by GET."""
        return self._routes.find("GET" if method == "HEAD" else method, path)

    def find_socket(self, path: str) -> tuple[BoundSocket, list[str]] | None:
        """Find the route of a WebSocket."""
        return self._sockets.find(SOCKET, path)

    def add(self, group: RouteGroup) -> None:
        """Mount a group, wholly or not at all.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """
        routes = [bind(group.name, route) for route in group.routes]
        sockets = [bind_socket(group.name, route) for route in group.sockets]
        places = [(b.route.method, b.template) for b in routes]
        places += [(SOCKET, template) for template, _ in sockets]
        self._claim(group.name, places)
        for bound in routes:
            self._routes.add(bound.route.method, bound.template, bound)
        for template, socket in sockets:
            self._sockets.add(SOCKET, template, socket)
        unique = f"{group.name.replace('.', '_')}_{len(self._groups)}"
        self._groups.append((unique, routes))
        if self._app is not None:
            from .app import blueprint

            self._app.register_blueprint(blueprint(unique, routes, self._dispatcher))
        self.bound += routes

    def _claim(self, group: str, places: list[tuple[str, Template]]) -> None:
        claimed: dict[tuple[str, str], str] = {}
        for method, template in places:
            place = (method, template.shape)
            owner = claimed.get(place) or self._owners.get(place)
            if owner is not None:
                raise PluginError(
                    f"{method} {template.openapi} of route group {group!r} is taken "
                    f"by route group {owner!r}"
                )
            claimed[place] = group
        self._owners |= claimed
