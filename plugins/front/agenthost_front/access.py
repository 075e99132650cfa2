"""Who comes in: the key, loopback, and tickets for a browser's WebSocket."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from agenthost import Grants, Principal, PrincipalKind, Unauthenticated

from .settings import FrontSettings

ANONYMOUS = Principal(PrincipalKind.ANONYMOUS, "anonymous", Grants())
LOOPBACK = Principal(PrincipalKind.LOOPBACK, "loopback")
NETWORK = Principal(PrincipalKind.OPERATOR, "network")
KEY_HOLDER = Principal(PrincipalKind.API_KEY, "api_key")

_NO_KEY = (
    "no api_key is set, so only clients on this machine are served; set api_key and "
    "send 'Authorization: Bearer <key>'"
)
_WRONG_KEY = "missing or invalid 'Authorization: Bearer <api_key>' header"
_WRONG_TICKET = "the ticket is unknown, used or older than 30 s; ask for another"


class Tickets:
    """Single-use, short-lived stand-ins for the key, for WebSockets of browsers.

    Args:
        monotonic: Seconds of a clock that never jumps.
        lifetime: Seconds a ticket is good for.
        limit: Tickets waiting at once; the oldest gives way.
    """

    def __init__(
        self, monotonic: Callable[[], float], lifetime: float = 30.0, limit: int = 1024
    ) -> None:
        self.lifetime = lifetime
        self._monotonic = monotonic
        self._limit = limit
        self._waiting: dict[str, tuple[float, Principal]] = {}

    def issue(self, principal: Principal) -> str:
        """Make a ticket that lets its bearer act as the principal, once."""
        while len(self._waiting) >= self._limit:
            del self._waiting[next(iter(self._waiting))]
        ticket = secrets.token_urlsafe(32)
        self._waiting[ticket] = (self._monotonic() + self.lifetime, principal)
        return ticket

    def holder(self, ticket: str) -> Principal | None:
        """Tell whom a ticket stands for; None when it is unknown, used or too old."""
        expires, principal = self._waiting.get(ticket, (0.0, None))
        return principal if self._monotonic() < expires else None

    def redeem(self, ticket: str) -> Principal | None:
        """Take the ticket; None when it is unknown, used or too old."""
        principal = self.holder(ticket)
        self._waiting.pop(ticket, None)
        return principal


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    """Tell whether an IP address, mapped ones included, is this machine's loopback."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_loopback


class Access:
    """The access rule: from a request's peer and headers to its principal."""

    def __init__(self, settings: FrontSettings, tickets: Tickets) -> None:
        self._expected = settings.key.encode()
        self._open = settings.allow_unauthenticated_network
        self._tickets = tickets

    def identify(self, client: str, headers: Mapping[str, str]) -> Principal:
        """Find who asks.

        Raises:
            Unauthenticated: The key is missing or wrong, or there is none and the
                peer is elsewhere.
        """
        if not self._expected:
            return self._by_address(client)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Bare strip() also takes two bytes that end letters of UTF-8.
        offered = given.strip(" \t").encode("latin-1")
        if hmac.compare_digest(offered, self._expected) and scheme.lower() == "bearer":
            return KEY_HOLDER
        raise Unauthenticated(_WRONG_KEY)

    def identify_socket(
        self, client: str, headers: Mapping[str, str], ticket: str | None
    ) -> Principal:
        """Find who asks for a WebSocket; a ticket stands for the key, and stays good.

        Raises:
            Unauthenticated: As for :meth:`identify`, or the ticket is no good.
        """
        if ticket is None or not self._expected:
            return self.identify(client, headers)
        principal = self._tickets.holder(ticket)
        if principal is None:
            raise Unauthenticated(_WRONG_TICKET)
        return principal

    def redeem(self, ticket: str | None) -> None:
        """Use a ticket up, if there is one."""
        if ticket is not None:
            self._tickets.redeem(ticket)

    def identify_public(self, client: str, headers: Mapping[str, str]) -> Principal:
        """Find who asks for something public; whoever is not known is anonymous."""
        try:
            return self.identify(client, headers)
        except Unauthenticated:
            return ANONYMOUS

    def _by_address(self, client: str) -> Principal:
        if is_loopback(client):
            return LOOPBACK
        if self._open:
            return NETWORK
        raise Unauthenticated(_NO_KEY)
