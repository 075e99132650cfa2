"""Who a request comes from when it came through proxies that the operator trusts.

Each proxy adds, at the right end of a header, whom it got the request from. So it is
read from the right, as far as trusted proxies wrote it; whatever stands left of that,
anybody may have made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from .asgi import ASGIApp, Receive, Scope, Send

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # nosec B105 # noqa: S105 - what HTTP calls a token
_PAIR = re.compile(rf'\s*({_TOKEN})=({_TOKEN}|"[^"\\]*")\s*')
_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?")
_WITH_PORT = re.compile(r"([0-9.]+)(?::\d{1,5})?")


class Forwarded:
    """The application, told of clients as the proxies in front tell of them.

    Args:
        app: What serves.
        proxies: Addresses and networks whose word is taken.
        header: The header that they write: ``x-forwarded-for`` or ``forwarded``.
    """

    def __init__(self, app: ASGIApp, proxies: Iterable[str], header: str) -> None:
        self._app = app
        self._proxies = networks(proxies)
        self._header = header.encode()
        self._hops = _HOPS[header]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, under the client's own address."""
        peer, port = scope.get("client") or ("", 0)
        client = self._client(str(peer), scope["headers"])
        await self._app({**scope, "client": (client, port)}, receive, send)

    def _client(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        known = _read(peer)
        if known is None or not self._trusted(known):
            return peer
        lines = [v.decode("latin-1") for name, v in headers if name == self._header]
        for hop in self._hops(",".join(lines)):
            address = _read(hop)
            if address is None:
                # A trusted proxy would name an address: here its word ends.
                break
            known = address
            if not self._trusted(address):
                break
        return str(known)

    def _trusted(self, address: Address) -> bool:
        return any(address in network for network in self._proxies)


def networks(proxies: Iterable[str]) -> tuple[Network, ...]:
    """Read addresses and networks.

    Raises:
        ValueError: One is neither.
    """
    try:
        return tuple(ip_network(each) for each in proxies)
    except ValueError as error:
        raise ValueError(
            f'{error}; name addresses or networks, such as "127.0.0.1" or "10.0.0.0/8"'
        ) from None


def _read(text: str) -> Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _listed(value: str) -> Iterator[str]:
    for hop in reversed(value.split(",")):
        yield _bare(hop.strip())


def _told(value: str) -> Iterator[str]:
    for element in reversed(value.split(",")):
        pairs = [_PAIR.fullmatch(pair) for pair in element.split(";")]
        named = [p[2].strip('"') for p in pairs if p and p[1].lower() == "for"]
        # Of an element that is not wholly proper nothing is believed.
        yield _bare(named[0]) if len(named) == 1 and all(pairs) else ""


def _bare(hop: str) -> str:
    """Take brackets and port from an address."""
    found = _BRACKETED.fullmatch(hop) or _WITH_PORT.fullmatch(hop)
    return found[1] if found else hop


_HOPS = {"x-forwarded-for": _listed, "forwarded": _told}
