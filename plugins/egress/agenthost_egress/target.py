"""Where a URL leads, read so strictly that no two parsers can disagree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import httpx
from agenthost import InvalidInput

_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"(?=.{1,254}\Z)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Target:
    """A checked destination; ``host`` is lower case, without brackets or final dot."""

    scheme: str
    host: str
    port: int


def target_of(url: httpx.URL) -> Target:
    """Read scheme, host and port of an absolute http(s) URL.

    Raises:
        InvalidInput: The URL has user information, another scheme, or a host that
            some parser could take for something else (``0x7f.1``, ``127.1``, ``a%2e``).
    """
    if url.userinfo:
        raise InvalidInput("url", "user information before the host is not allowed")
    return _target(url.scheme, url.raw_host, url.port)


@lru_cache(maxsize=1024)
def _target(scheme: str, raw_host: bytes, asked_port: int | None) -> Target:
    if scheme not in _PORTS:
        raise InvalidInput("url", "only http:// and https:// addresses can be fetched")
    host = raw_host.decode("ascii", "replace").lower()
    if not (_is_literal(host) or _is_name(host)):
        raise InvalidInput("url", f"{host[:80]!r} is not a plain host name or address")
    port = _PORTS[scheme] if asked_port is None else asked_port
    if not 0 < port < 65536:
        raise InvalidInput("url", f"{port} is not a port")
    return Target(scheme, host.rstrip("."), port)


def _is_literal(host: str) -> bool:
    """Tell whether the host is an address in its one canonical notation."""
    try:
        if ":" in host:
            IPv6Address(host)
            return "%" not in host
        IPv4Address(host)
    except AddressValueError:
        return False
    return True


def _is_name(host: str) -> bool:
    """Tell whether the host is a name that no resolver reads as a number."""
    if not _NAME.fullmatch(host):
        return False
    return not _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2])
