"""The port FRONT: what listens and serves the routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..context import Principal
from ..secrets import Secret

if TYPE_CHECKING:
    from quart import Quart

    from ..routes import RouteGroup


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request shows to say who asks.

    ``scheme`` is that of its ``Authorization``, in lower case; ``client`` the address
    it comes from, ``local`` whether that is this machine.
    """

    scheme: str
    token: Secret
    client: str
    local: bool


class Tickets(Protocol):
    """Single-use, short-lived stand-ins for the key, for WebSockets of browsers."""

    lifetime: float

    def issue(self, principal: Principal) -> str:
        """Make a ticket that lets its bearer act as the principal, once."""


class Front(Protocol):
    """Everything between a TCP port and the handlers of route groups."""

    panics: int

    @property
    def app(self) -> Quart:
        """The Quart application that plugins may ask for."""

    @property
    def tickets(self) -> Tickets:
        """What stands for the key in a browser's WebSocket."""

    def mount(self, group: RouteGroup) -> None:
        """Serve the routes of a group, all or none; only before :meth:`start`.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen and serve; return the address, with the real port for port 0.

        Raises:
            Conflict: The port is taken.
            ConfigError: The address cannot be listened on.
        """

    def dismiss(self, principal: Principal) -> None:
        """End what is open for a principal that is one no more.

        Its WebSockets, its event streams and its tickets; turns it has started go on
        where they outlive a client that leaves.
        """

    def charge(self, principal: Principal, units: int) -> None:
        """Take units from the principal's own allowance, when it has one.

        Raises:
            RateLimited: There are not so many left in this minute.
        """

    async def warm_up(self) -> None:
        """Do what the first requests would wait for, off the event loop."""

    async def drain(self, end_turns: Callable[[], Awaitable[None]] | None) -> None:
        """Refuse new work, end the turns by the callback, close streams and sockets."""

    async def stop(self) -> None:
        """End what still runs and stop the server; the store may close after it."""
