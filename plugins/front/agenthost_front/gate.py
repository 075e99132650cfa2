"""What every request and upgrade is asked before anything is done for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import Guard, InvalidInput, RequestCase, Unauthenticated

from .access import Access, Tickets
from .admission import Admission, Allowances, Dismissals
from .answers import Draining
from .asgi import Scope
from .authentication import Authenticators, FailedLogins
from .dispatch import Exchange, read_query
from .origins import SAFE, Origins
from .refusals import Refusals
from .settings import FrontSettings

if TYPE_CHECKING:
    from agenthost import Host

DEFAULT_COST = 5


class Gate:
    """Draining, the request guards, and host and origin, in this order.

    ``dismissals`` are who was let in by others and may not be any more, ``refusals``
    tells who was refused.
    """

    def __init__(self, host: Host, settings: FrontSettings, tickets: Tickets) -> None:
        self.draining = False
        self.settings = settings
        self.origins = Origins(settings)
        self.others = Authenticators(host)
        self.access = Access(settings, tickets, self.others, FailedLogins(host))
        self.dismissals = Dismissals()
        self.allowances = Allowances(host.clock.monotonic)
        self.refusals = Refusals(host)
        self._host = host

    def listen_on(self, host: str) -> None:
        """Take the address the daemon listens on for a good ``Host``."""
        self.origins = Origins(self.settings, host)

    def admit(
        self,
        exchange: Exchange,
        scope: Scope,
        cost: int,
        origins: tuple[str, ...] = (),
    ) -> None:
        """Let the request in, or refuse; ``origins`` are those its route adds.

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
            self.origins.check_origin(exchange.headers, origins)
        if not exchange.path.startswith("/"):
            raise InvalidInput("", "the request's target must be a path")
        if exchange.query_string:
            exchange.query = read_query(exchange.query_string)

    async def ask(self, exchange: Exchange, cost: int) -> None:
        """Ask who somebody undecided is, and charge what that principal may use.

        Raises:
            Unauthenticated: Nobody knows the key, or it holds no more.
            Unavailable: Who may know it cannot say now.
            RateLimited: Its allowance is used up.
        """
        # Before asking: who is dismissed while the answer is under way is out.
        count = self.dismissals.count
        principal = await self.access.ask(exchange.client, exchange.headers)
        exchange.principal = principal
        exchange.admission = Admission(self.dismissals, principal, count)
        exchange.admission.check()
        self.charge(exchange, cost)

    def charge(self, exchange: Exchange, cost: int) -> None:
        """Charge a principal that has an allowance of its own instead of its address.

        Raises:
            RateLimited: Its allowance is used up; the address has paid for the attempt.
        """
        principal, guards = exchange.principal, self._host.guards
        self.allowances.charge(principal, cost)
        if principal.allowance is not None and guards.filled(Guard.REQUEST):
            case = RequestCase("KEY", exchange.path, exchange.client, -cost)
            guards.check(Guard.REQUEST, case)


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


def show_key(exchange: Exchange, header: str) -> None:
    """Take a key that stands in a header of its own for one in ``Authorization``.

    Raises:
        Unauthenticated: There is another in ``Authorization``.
    """
    headers = exchange.headers
    if header not in headers:
        return
    shown = headers.setdefault("authorization", f"Bearer {headers[header]}")
    scheme, _, key = shown.partition(" ")
    if scheme.lower() != "bearer" or key.strip(" \t") != headers[header].strip(" \t"):
        problem = f"{header} and Authorization show two keys; send one"
        raise Unauthenticated(problem)
