"""Route groups become a tree for the layer and blueprints for Quart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agenthost import NotFound, PluginError, RouteGroup
from quart import Blueprint, Quart, Response

from .answers import Plain
from .app import current_exchange, respond
from .dispatch import Bound, BoundSocket, Dispatcher, bind, bind_socket
from .paths import PathTree, Template

SOCKET = "WEBSOCKET"


class Mounted:
    """Every route of a front."""

    def __init__(self, app: Quart, dispatcher: Dispatcher) -> None:
        self.app: Any = app
        self.bound: list[Bound] = []
        self._dispatcher = dispatcher
        self._routes: PathTree[Bound] = PathTree()
        self._sockets: PathTree[BoundSocket] = PathTree()
        self._owners: dict[tuple[str, str], str] = {}

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
        self.app.register_blueprint(self._blueprint(group.name, routes))
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

    def _blueprint(self, name: str, routes: list[Bound]) -> Blueprint:
        unique = f"{name.replace('.', '_')}_{len(self.app.blueprints)}"
        blueprint = Blueprint(unique, "agenthost_front")
        for number, bound in enumerate(routes):
            blueprint.add_url_rule(
                bound.template.quart,
                endpoint=f"{bound.route.method.lower()}_{number}",
                view_func=self._view(bound),
                methods=[bound.route.method],
            )
        return blueprint

    def _view(self, bound: Bound) -> Callable[..., Awaitable[Response]]:
        names = bound.template.names

        async def view(**values: str) -> Response:
            exchange = current_exchange()
            if exchange.found is not bound:
                # Quart also takes //path for /path; cost and limits were not asked.
                raise NotFound("path", exchange.path)
            texts = [values[name] for name in names]
            outcome = await self._dispatcher.perform(bound, exchange, texts)
            if isinstance(outcome, Plain):
                return respond(outcome)
            exchange.stream = outcome
            return Response(b"")

        return view
