"""The port FRONT: what listens and serves the routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from .access import Access

if TYPE_CHECKING:
    from quart import Quart

    from ..routes import Mountable


class Front(Protocol):
    """Everything between a TCP port and the handlers of route groups.

    ``fingerprint`` is the SHA-256 of the certificate it shows, "" where it speaks no
    TLS.
    """

    panics: int
    fingerprint: str

    @property
    def app(self) -> Quart:
        """The Quart application that plugins may ask for."""

    @property
    def access(self) -> Access:
        """Whoever was let in: tickets, allowances, and who is here no more."""

    def mount(self, group: Mountable) -> None:
        """Serve a group or a Blueprint, wholly or not; only before :meth:`start`.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen and serve; return the address, with the real port for port 0.

        Raises:
            Conflict: The port is taken.
            ConfigError: The address cannot be listened on.
        """

    async def warm_up(self) -> None:
        """Do what the first requests would wait for, off the event loop."""

    async def drain(self, end_turns: Callable[[], Awaitable[None]] | None) -> None:
        """Refuse new work, end the turns by the callback, close streams and sockets."""

    async def stop(self) -> None:
        """End what still runs and stop the server; the store may close after it."""
