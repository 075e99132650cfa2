"""A front that nobody can reach, asked as the ASGI application that it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from agenthost import Guards, SystemClock

if TYPE_CHECKING:
    from agenthost import Event, Front, Host, RouteGroup
    from pydantic import BaseModel

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
M = TypeVar("M", bound="BaseModel")

OpenFront = Callable[["Host"], "Front"]


class Answered(NamedTuple):
    """What came back; ``headers`` by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Nobody:
    """As much of a daemon as a front needs that serves nobody: no plugin, no key."""

    allow_unauthenticated_network = False

    def __init__(self, api_key: object) -> None:
        self.api_key = api_key
        self.home = Path()
        self.config = self.plugins = self.registry = self.events = self
        self.clock = SystemClock()
        self.guards = Guards()

    def settings(self, model: type[M]) -> M:
        """Give the defaults of a section, without building what would check others."""
        return model.model_construct()

    def wants(self, kind: type[Event]) -> bool:  # noqa: ARG002 - of any kind
        """Tell that nobody listens."""
        return False


class Probe:
    """Asks the layer of a front of its own.

    Args:
        open_front: Opens the backend that serves the daemon.
        group: What is served besides the front's own routes.
        api_key: The key of the API, if there is to be one.

    Raises:
        RuntimeError: This front is no ASGI application.
    """

    def __init__(
        self, open_front: OpenFront, group: RouteGroup, api_key: object = None
    ) -> None:
        front = open_front(cast("Host", Nobody(api_key)))
        front.mount(group)
        asgi = getattr(front, "asgi", None)
        if asgi is None:
            raise RuntimeError("this front is no ASGI application: it cannot be proven")
        self._asgi: Callable[..., Awaitable[None]] = asgi

    async def ask(
        self,
        path: str,
        headers: Mapping[str, str] = NO_HEADERS,
        method: str = "GET",
        *,
        socket: bool = False,
    ) -> Answered:
        """Send a request without a body, or ask for a WebSocket."""
        named = {"host": "localhost", **headers}
        scope = {
            "type": "websocket" if socket else "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
            "headers": [
                (name.encode(), value.encode()) for name, value in named.items()
            ],
        }
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect" if socket else "http.request"}

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        await self._asgi(scope, receive, send)
        if not said:
            raise RuntimeError(f"{method} {path} was not answered")
        return _answered(said)


def _answered(said: list[dict[str, Any]]) -> Answered:
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1")
        for name, value in said[0].get("headers", ())
    }
    body = b"".join(message.get("body", b"") for message in said[1:])
    return Answered(said[0].get("status", 101), headers, body)
