"""Which client an address belongs to, as a number of 64 bits."""

from __future__ import annotations

from functools import lru_cache
from socket import AF_INET, AF_INET6, inet_pton

NOBODY = 1
"""Of all that is no address."""
_V4 = 1 << 32
_MAPPED = b"\0" * 10 + b"\xff\xff"


@lru_cache(maxsize=4096)
def client_of(address: str) -> int:
    """Tell the client: IPv4 addresses one by one, of IPv6 all of a /64."""
    try:
        if ":" not in address:
            return _V4 | int.from_bytes(inet_pton(AF_INET, address))
        packed = inet_pton(AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return NOBODY
    if packed.startswith(_MAPPED):
        return _V4 | int.from_bytes(packed[12:])
    # The loopback's network is 0, which stands for a free place.
    return int.from_bytes(packed[:8]) or NOBODY
