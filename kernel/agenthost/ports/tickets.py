"""Tickets: what a browser shows instead of the key when it opens a WebSocket."""

from __future__ import annotations

from typing import Protocol

from ..context import Principal


class Tickets(Protocol):
    """Single-use, short-lived stand-ins for the key, for WebSockets of browsers."""

    lifetime: float

    def issue(self, principal: Principal) -> str:
        """Make a ticket that lets its bearer act as the principal, once."""
