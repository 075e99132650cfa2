"""What every request and upgrade is asked before anything is done for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import Guard, InvalidInput, RequestCase

from .access import Access, Tickets
from .answers import Draining
from .asgi import Scope
from .dispatch import Exchange, read_query
from .origins import SAFE, Origins
from .settings import FrontSettings

if TYPE_CHECKING:
    from agenthost import Host

DEFAULT_COST = 5


class Gate:
    """Draining, the request guards, and host and origin, in this order."""

    def __init__(self, host: Host, settings: FrontSettings, tickets: Tickets) -> None:
        self.draining = False
        self.settings = settings
        self.origins = Origins(settings)
        self.access = Access(settings, tickets)
        self._host = host

    def listen_on(self, host: str) -> None:
        """Take the address the daemon listens on for a good ``Host``."""
        self.origins = Origins(self.settings, host)

    def admit(self, exchange: Exchange, scope: Scope, cost: int) -> None:
        """Let the request in, or refuse.

        Raises:
            Draining: The daemon is ending.
            AgentHostError: What a guard of the point ``request`` said.
            Denied: Host or origin is not allowed.
            InvalidInput: The target is not a path, or the query is too long.
        """
        if self.draining:
            raise Draining("the daemon is shutting down and takes no new work")
        guards = self._host.guards
        if guards.filled(Guard.REQUEST):
            case = RequestCase(exchange.method, exchange.path, exchange.client, cost)
            guards.check(Guard.REQUEST, case)
        local = scope.get("server") or ("", 0)
        self.origins.check_host(exchange.headers.get("host", ""), str(local[0]))
        if exchange.method not in SAFE or scope["type"] == "websocket":
            self.origins.check_origin(exchange.headers)
        if not exchange.path.startswith("/"):
            raise InvalidInput("", "the request's target must be a path")
        if exchange.query_string:
            exchange.query = read_query(exchange.query_string)


def open_exchange(scope: Scope, request_id: str) -> Exchange:
    """Read what every later step needs of an ASGI scope."""
    headers = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
    }
    client = scope.get("client") or ("", 0)
    return Exchange(
        request_id,
        scope.get("method", "GET"),
        scope["path"],
        str(client[0]),
        headers,
        scope.get("query_string", b""),
    )
