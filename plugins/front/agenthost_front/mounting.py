"""Route groups become a tree for the layer and blueprints for Quart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import LateRoutes, Mountable, PluginError, RouteGroup

from .answers import ErrorMap
from .dispatch import Dispatcher, Endpoint, SocketEndpoint, bind, bind_socket
from .openapi import operation_id
from .paths import PathTree, Segment, Template

if TYPE_CHECKING:
    from quart import Quart

    from .foreign import Foreign

SOCKET = "WEBSOCKET"

log = logging.getLogger(__name__)


class Mounted:
    """Every route of a front, and the Quart application that runs most of them.

    The application is made when it is first needed: a start, and the routes that are
    served without it, need not wait for its import. ``late`` are groups that are not
    read yet; :meth:`complete` reads them.
    """

    def __init__(self, errors: ErrorMap, dispatcher: Dispatcher) -> None:
        self.endpoints: list[Endpoint] = []
        self.sockets: list[tuple[Template, SocketEndpoint]] = []
        self.late: list[LateRoutes] = []
        self._errors = errors
        self._dispatcher = dispatcher
        self._app: Quart | None = None
        self._foreign: Foreign | None = None
        self._ready: Quart | None = None
        # Quart is started by the first request that needs it, and only once.
        self._starting = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._routes: PathTree[Endpoint] = PathTree()
        self._sockets: PathTree[SocketEndpoint] = PathTree()
        self._owners: dict[tuple[str, str], str] = {}
        self._names: set[str] = set()
        self._alone: dict[int, bool] = {}

    @property
    def made(self) -> bool:
        """Whether the application has been asked for."""
        return self._app is not None

    @property
    def app(self) -> Quart:
        """The application; it is made here at the first call."""
        if self._app is None:
            from .app import create_app
            from .foreign import Foreign

            self._app = create_app(self._errors, self._dispatcher)
            self._foreign = Foreign(self._app)
        return self._app

    async def ready(self) -> Quart:
        """Give the application, started; what it imports is imported off the loop."""
        # Once it serves, Quart takes no further routes.
        await self.complete()
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

    async def complete(self) -> None:
        """Read the groups that wait for it; what they import is imported off the loop.

        One that cannot be read is left out: its paths are not served.
        """
        await self._read(lambda _: True)

    async def complete_for(self, path: str) -> None:
        """Read the groups that a path may belong to, and that are not read yet."""
        if any(_below(path, _places(each.paths)) for each in self.late):
            await self._read(lambda late: _below(path, _places(late.paths)))

    def is_alone(self, match: tuple[Endpoint, list[str]] | None) -> bool:
        """Tell whether no group that is not read yet may have a route there, too."""
        if match is None:
            return False
        # Asked of every request, and the same for as long as a route is there.
        endpoint = match[0]
        if id(endpoint) not in self._alone:
            segments = endpoint.template.segments
            places = [place for late in self.late for place in late.paths]
            self._alone[id(endpoint)] = not any(_may_meet(segments, p) for p in places)
        return self._alone[id(endpoint)]

    async def _read(self, wanted: Callable[[LateRoutes], bool]) -> None:
        async with self._reading:
            for late in filter(wanted, tuple(self.late)):
                with _left_out(late):
                    self._add_late(late, await asyncio.to_thread(late.load))
                self.late.remove(late)

    def find(self, method: str, path: str) -> tuple[Endpoint, list[str]] | None:
        """Find the route of a request; HEAD is served by GET."""
        ours = self._routes.find("GET" if method == "HEAD" else method, path)
        if ours is None and self._foreign is not None:
            other = self._foreign.find(method, path)
            return None if other is None else (other, [])
        if ours is not None and not self._dispatcher.offers(ours[0].route, path):
            return None
        return ours

    def methods(self, path: str) -> Sequence[str]:
        """Name the methods that a path of a route group has; none of any other."""
        known = self._routes.methods
        ours = {method for method in known if self.find(method, path) is not None}
        if not ours:
            return ()
        return sorted(ours | {"OPTIONS"} | ({"HEAD"} if "GET" in ours else set()))

    def find_socket(self, path: str) -> tuple[SocketEndpoint, list[str]] | None:
        """Find the route of a WebSocket."""
        return self._sockets.find(SOCKET, path)

    def add(self, group: Mountable) -> None:
        """Mount a group or a Quart Blueprint, wholly or not at all.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """
        if isinstance(group, LateRoutes):
            # What comes later must find its places taken.
            places = _places(group.paths)
            if any(_below(each.route.path, places) for each in self.endpoints):
                self._add_late(group, group.load())
            else:
                self.late.append(group)
            return
        for late in [each for each in self.late if _meets(each, group)]:
            self.late.remove(late)
            with _left_out(late):
                self._add_late(late, late.load())
        if isinstance(group, RouteGroup):
            self._add_group(group)
        else:
            self._add_blueprint(group)

    def _add_late(self, late: LateRoutes, group: RouteGroup) -> None:
        if group.name != late.name:
            raise PluginError(f"late routes {late.name!r} give group {group.name!r}")
        public = {route.path for route in group.routes if route.public}
        places = _places(late.paths)
        for path in _paths(group):
            if path in public or not _below(path, places):
                raise PluginError(
                    f"late routes {late.name!r}: {path} is public, or not below "
                    f"{', '.join(late.paths)}"
                )
        self._add_group(group)

    def _add_group(self, group: RouteGroup) -> None:
        routes = [bind(group.name, route) for route in group.routes]
        sockets = [bind_socket(group.name, route) for route in group.sockets]
        places = [(b.route.method, b.template) for b in routes]
        places += [(SOCKET, template) for template, _ in sockets]
        self._claim(group.name, places)
        self._name(group.name, routes)
        for endpoint in routes:
            self._routes.add(endpoint.route.method, endpoint.template, endpoint)
        for template, socket in sockets:
            self._sockets.add(SOCKET, template, socket)
        self.endpoints += routes
        self.sockets += sockets

    def _add_blueprint(self, group: Mountable) -> None:
        from .foreign import as_blueprint, rules_of

        blueprint = as_blueprint(group)
        routes = list(rules_of(blueprint))
        self._claim(group.name, [(b.route.method, b.template) for b in routes])
        try:
            self.app.register_blueprint(blueprint)
        except ValueError as error:
            raise PluginError(f"blueprint {group.name!r}: {error}") from error
        self.endpoints += routes

    def _name(self, group: str, routes: list[Endpoint]) -> None:
        """Keep operations apart, so that clients made of the document stay the same."""
        names = [operation_id(endpoint) for endpoint in routes]
        for name in names:
            if name in self._names or names.count(name) > 1:
                raise PluginError(
                    f"route group {group!r}: two routes are called {name}; give a "
                    "handler or the group another name"
                )
        self._names |= set(names)

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


@contextmanager
def _left_out(late: LateRoutes) -> Iterator[None]:
    """Leave out what cannot be read, and say so."""
    try:
        yield
    except Exception:
        log.exception("the routes of %s are not served", late.name)


def _meets(late: LateRoutes, group: Mountable) -> bool:
    """Whether a group may want a place of one that was offered before it."""
    if not isinstance(group, RouteGroup) or group.name == late.name:
        return True
    places = _places(late.paths)
    return any(_below(path, places) for path in _paths(group))


def _may_meet(segments: Sequence[Segment], place: str) -> bool:
    """Whether a path may fit a template and be below a place."""
    for segment, text in zip(segments, place[1:].split("/"), strict=False):
        if segment.rest:
            return True
        if not segment.parameter and segment.text != text:
            return False
    return True


def _paths(group: RouteGroup) -> list[str]:
    return [each.path for each in group.routes] + [each.path for each in group.sockets]


def _places(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{path}/" for path in paths)


def _below(path: str, places: tuple[str, ...]) -> bool:
    return f"{path}/".startswith(places)
