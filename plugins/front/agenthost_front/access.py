"""Who comes in: the key, loopback, tickets for a browser's WebSocket, and others."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from agenthost import (
    Credentials,
    Grants,
    Principal,
    PrincipalKind,
    Secret,
    Unauthenticated,
)

from .admission import who
from .authentication import Authenticators, FailedLogins
from .settings import FrontSettings

ANONYMOUS = Principal(PrincipalKind.ANONYMOUS, "anonymous", Grants())
UNDECIDED = Principal(PrincipalKind.ANONYMOUS, "undecided", Grants())
"""Of whoever shows a key that is not the configured one, until others were asked."""
LOOPBACK = Principal(PrincipalKind.LOOPBACK, "loopback")
NETWORK = Principal(PrincipalKind.OPERATOR, "network")
KEY_HOLDER = Principal(PrincipalKind.API_KEY, "api_key")

_NO_KEY = (
    "no api_key is set, so only clients on this machine are served; set api_key and "
    "send 'Authorization: Bearer <key>'"
)
_WRONG_KEY = "missing or invalid 'Authorization: Bearer <key>' header"
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

    def forget(self, principal: Principal) -> None:
        """Let none of the tickets of a principal be good any more."""
        kept = {t: w for t, w in self._waiting.items() if who(w[1]) != who(principal)}
        self._waiting = kept


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
    """The access rule: from a request's peer and headers to its principal.

    The configured key and loopback are known at once; what else is shown, the
    authenticators of plugins are asked about, where there are some.
    """

    def __init__(
        self,
        settings: FrontSettings,
        tickets: Tickets,
        others: Authenticators,
        failed: FailedLogins,
    ) -> None:
        self._expected = settings.key.encode()
        self._open = settings.allow_unauthenticated_network
        self._tickets = tickets
        self._others = others
        self._failed = failed

    def identify(self, client: str, headers: Mapping[str, str]) -> Principal:
        """Find who asks; UNDECIDED when that is to be asked with :meth:`ask`.

        Raises:
            Unauthenticated: The key is missing or wrong, or there is none and the
                peer is elsewhere.
        """
        if not self._expected:
            if self._others and "authorization" in headers:
                return UNDECIDED
            return self._by_address(client)
        scheme, offered = _shown(headers)
        if hmac.compare_digest(offered, self._expected) and scheme == "bearer":
            return KEY_HOLDER
        if offered and self._others:
            return UNDECIDED
        if offered:
            self._failed.add(client)
        raise Unauthenticated(_WRONG_KEY)

    async def ask(self, client: str, headers: Mapping[str, str]) -> Principal:
        """Ask others who it is; whom nobody knows is judged as without a key.

        Raises:
            Unauthenticated: Nobody knows the key, or it holds no more.
            Unavailable: Who may know it cannot say now.
        """
        scheme, offered = _shown(headers)
        token = Secret(offered.decode("latin-1"))
        shown = Credentials(scheme, token, client, is_loopback(client))
        try:
            principal = await self._others.ask(shown)
        except Unauthenticated:
            self._failed.add(client)
            raise
        if principal is not None:
            return principal
        if not self._expected:
            return self._by_address(client)
        self._failed.add(client)
        raise Unauthenticated(_WRONG_KEY)

    def identify_socket(
        self, client: str, headers: Mapping[str, str], ticket: str | None
    ) -> Principal:
        """Find who asks for a WebSocket; a ticket stands for the key, and stays good.

        Raises:
            Unauthenticated: As for :meth:`identify`, or the ticket is no good.
        """
        if ticket is None:
            return self.identify(client, headers)
        principal = self._tickets.holder(ticket)
        if principal is not None:
            return principal
        if not self._expected:
            return self.identify(client, headers)
        self._failed.add(client)
        raise Unauthenticated(_WRONG_TICKET)

    def redeem(self, ticket: str | None) -> None:
        """Use a ticket up, if there is one."""
        if ticket is not None:
            self._tickets.redeem(ticket)

    def identify_public(self, client: str, headers: Mapping[str, str]) -> Principal:
        """Find who asks for something public; whoever is not known is anonymous."""
        try:
            principal = self.identify(client, headers)
        except Unauthenticated:
            return ANONYMOUS
        return ANONYMOUS if principal is UNDECIDED else principal

    def _by_address(self, client: str) -> Principal:
        if is_loopback(client):
            return LOOPBACK
        if self._open:
            return NETWORK
        raise Unauthenticated(_NO_KEY)


def _shown(headers: Mapping[str, str]) -> tuple[str, bytes]:
    """Take ``Authorization`` apart: its scheme in lower case, and what is shown."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    # Bare strip() also takes two bytes that end letters of UTF-8.
    return scheme.lower(), given.strip(" \t").encode("latin-1")
