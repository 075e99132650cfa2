"""Where a request claims to come from and to go to: rebinding, CSRF and CORS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from agenthost import Denied

from .access import is_loopback
from .answers import Plain
from .asgi import Headers
from .settings import FrontSettings

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# By hand: urlsplit reads "[::1].evil.example" as "::1".
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9A-Fa-f:.]+(?:%[\w.~-]+)?)\]|(?P<name>[\w.~-]+))"
    r"(?::(?P<port>\d{0,5}))?",
    re.ASCII,
)
_VARY = (b"vary", b"origin")


class Origins:
    """The rules of ``Host``, ``Origin`` and CORS.

    Args:
        settings: The configured hosts and origins.
        listen_host: The address the daemon listens on, itself a good ``Host``.
    """

    def __init__(self, settings: FrontSettings, listen_host: str = "") -> None:
        self._hosts = frozenset(h.lower() for h in settings.allowed_hosts)
        self._listen = listen_host.lower()
        self._cors = frozenset(o.rstrip("/").lower() for o in settings.cors_origins)
        self._allowed = self._cors | {
            o.rstrip("/").lower() for o in settings.allowed_origins
        }
        self._localhost_may_read = not settings.key

    def check_host(self, host: str, local_address: str) -> None:
        """Refuse a name that is not ours: a page may have pointed it here.

        Raises:
            Denied: The host is neither loopback, configured nor the local address.
        """
        name = hostname(host)
        if name in (local_address, self._listen) or is_loopback_name(name):
            return
        if name and (name in self._hosts or host.lower() in self._hosts):
            return
        raise Denied(
            f"host {host[:100]!r} is not served here; add it to [server] allowed_hosts"
        )

    def check_origin(
        self, headers: Mapping[str, str], more: tuple[str, ...] = ()
    ) -> None:
        """Refuse a page of another origin than ours, the allowed ones and these.

        Raises:
            Denied: ``Origin`` is neither the same nor an allowed one.
        """
        origin = headers.get("origin")
        if origin is None or _same(origin, headers.get("host", "")):
            return
        if origin.lower() in (*self._allowed, *more) or self._may_read(origin):
            return
        raise Denied(
            f"origin {origin[:100]!r} is not allowed; add it to "
            "[server] allowed_origins"
        )

    def cors(self, headers: Mapping[str, str]) -> Headers:
        """The headers that let the asking page read the answer, if it may."""
        origin = headers.get("origin")
        if origin is None or not self._may_read(origin):
            return []
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", b"x-request-id, retry-after"),
            _VARY,
        ]

    def preflight(self, headers: Mapping[str, str]) -> Plain:
        """Answer the question a browser asks before a request across origins.

        Raises:
            Denied: The page may not read what is served here.
        """
        if not self._may_read(headers.get("origin", "")):
            raise Denied("this origin is not in [server] cors_origins")
        return Plain(
            204,
            b"",
            [
                (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, DELETE"),
                (
                    b"access-control-allow-headers",
                    b"authorization, content-type, idempotency-key, last-event-id",
                ),
                (b"access-control-max-age", b"600"),
            ],
        )

    def _may_read(self, origin: str) -> bool:
        if origin.lower() in self._cors:
            return True
        return self._localhost_may_read and _is_localhost_origin(origin)


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Tell whether this is a browser's question rather than a request."""
    return (
        method == "OPTIONS"
        and "origin" in headers
        and "access-control-request-method" in headers
    )


@lru_cache(maxsize=256)
def hostname(host: str) -> str:
    """The name or address in a ``Host`` header, lower case, "" when it is none."""
    match = _HOST.fullmatch(host)
    if match is None or int(match["port"] or 0) > 65_535:
        return ""
    return (match["address"] or match["name"]).lower()


def is_loopback_name(name: str) -> bool:
    """Tell whether a host name can only mean this machine."""
    return name == "localhost" or is_loopback(name)


def _same(origin: str, host: str) -> bool:
    scheme, _, rest = origin.partition("://")
    return scheme in {"http", "https"} and bool(rest) and rest.lower() == host.lower()


@lru_cache(maxsize=256)
def _is_localhost_origin(origin: str) -> bool:
    scheme, _, rest = origin.partition("://")
    return scheme in {"http", "https"} and is_loopback_name(hostname(rest))
