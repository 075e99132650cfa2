"""Addresses of OAuth: which may be spoken to, and where metadata stands."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit, urlunsplit

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
LONGEST = 2_000


def is_secure(url: str) -> bool:
    """Tell whether an address is whole, and of https unless it is on this machine."""
    if len(url) > LONGEST or not url.isascii() or not url.isprintable():
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.fragment or parts.username is not None or set(url) & set(' "'):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_local(host))


def is_local(host: str) -> bool:
    """Tell whether a name in an address is that of this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def resource_metadata(resource: str) -> str:
    """Where the metadata of a resource stands (RFC 9728, section 3.1)."""
    parts = urlsplit(resource)
    return _at(parts, RESOURCE + parts.path.rstrip("/"))


def issuer_metadata(issuer: str) -> tuple[str, ...]:
    """Where that of an issuer may stand (RFC 8414, OpenID Connect Discovery)."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    places = [SERVER + path, OPENID + path, path + OPENID]
    return tuple(_at(parts, place) for place in dict.fromkeys(places))


def _at(parts: SplitResult, path: str) -> str:
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
