"""Who is let in: what a request shows, and what was let in already."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..context import Principal
from ..secrets import Secret


class Credentials(NamedTuple):
    """What a request shows to say who asks.

    ``scheme`` is that of its ``Authorization``, in lower case; ``client`` the address
    it comes from, ``local`` whether that is this machine.
    """

    scheme: str
    token: Secret
    client: str
    local: bool


class Access(Protocol):
    """Whoever was let in: tickets, allowances, and who is here no more.

    A ticket stands for the key in a browser's WebSocket, once, for ``ticket_seconds``.
    """

    ticket_seconds: float

    def ticket(self, principal: Principal) -> str:
        """Make a ticket that lets its bearer act as the principal, once."""

    def charge(self, principal: Principal, units: int) -> None:
        """Take units from the principal's own allowance, when it has one.

        Raises:
            RateLimited: There are not so many left in this minute.
        """

    def dismiss(self, principal: Principal) -> None:
        """End what is open for a principal that is one no more.

        Its WebSockets, its event streams and its tickets; turns it has started go on
        where they outlive a client that leaves.
        """
