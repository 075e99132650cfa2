"""Who was let in, as plugins see it: tickets, allowances, and letting go."""

from __future__ import annotations

from agenthost import Principal

from .access import Tickets
from .gate import Gate
from .sockets import Sockets
from .streams import Streams


class Entrance:
    """What the daemon hands to plugins of the front's access."""

    def __init__(
        self, gate: Gate, tickets: Tickets, streams: Streams, sockets: Sockets
    ) -> None:
        self.ticket_seconds = tickets.lifetime
        self.ticket = tickets.issue
        self.charge = gate.allowances.charge
        self._dismissals = gate.dismissals
        self._tickets = tickets
        self._streams = streams
        self._sockets = sockets

    def dismiss(self, principal: Principal) -> None:
        """End what is open for a principal that is one no more."""
        self._dismissals.add(principal)
        self._tickets.forget(principal)
        self._streams.end_dismissed()
        self._sockets.dismiss(principal)
