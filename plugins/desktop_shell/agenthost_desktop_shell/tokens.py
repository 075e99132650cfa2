"""Tokens of webviews: who on the IPC bridge is which window and webview."""

from __future__ import annotations

import hashlib
import math
import secrets
from typing import TYPE_CHECKING

from agenthost import Clock, Conflict, NotFound
from agenthost_values.value_class import value_class

from .terms import LOCAL, Caller

if TYPE_CHECKING:
    from .findings import Json
    from .folders import Folders

LIMIT = 1024


@value_class
class Binding:
    """What a token stands for; a shell issues one for each webview it opens.

    ``owner`` is who asked for it. It ends at ``expires_at`` of the daemon's clock, with
    its socket, or with neither.
    """

    id: str
    caller: Caller
    folders: Folders
    owner: str = ""
    expires_at: float = math.inf
    until_closed: bool = False

    def as_json(self) -> dict[str, Json]:
        """The binding without its token."""
        window, webview, origin = self.caller
        return {
            "id": self.id,
            "window": window,
            "webview": webview,
            "origin": origin,
            "platform": self.folders.platform,
            "application": self.folders.application,
            "resource": self.folders.resource,
            "until_closed": self.until_closed,
        }


class Tokens:
    """The tokens of one daemon; they end with it, and none is kept in the clear."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bindings: dict[bytes, Binding] = {}

    def issue(
        self,
        caller: Caller,
        folders: Folders,
        expires_in: float | None = None,
        *,
        owner: str = "",
        until_closed: bool = False,
    ) -> tuple[str, Binding]:
        """Make a token for a webview.

        Raises:
            Conflict: There are too many; revoke those of closed webviews.
        """
        self._forget_expired()
        if len(self._bindings) >= LIMIT:
            raise Conflict(
                f"{LIMIT} tokens are in use; revoke those of closed webviews"
            )
        token = secrets.token_urlsafe(32)
        lasting = math.inf if expires_in is None else expires_in
        ends = self._clock.monotonic() + lasting
        id_ = secrets.token_hex(8)
        binding = Binding(id_, caller, folders, owner, ends, until_closed)
        self._bindings[_digest(token)] = binding
        return token, binding

    def find(self, token: str) -> Binding | None:
        """The binding of a token, None when it is unknown, revoked or has ended."""
        binding = self._bindings.get(_digest(token))
        if binding is None or binding.expires_at <= self._clock.monotonic():
            return None
        return binding

    def closed(self, token: str) -> None:
        """Forget a token that ends with its socket, which has closed."""
        binding = self._bindings.get(_digest(token))
        if binding is not None and binding.until_closed:
            del self._bindings[_digest(token)]

    def listed(self) -> list[Binding]:
        """All bindings, oldest first."""
        self._forget_expired()
        return list(self._bindings.values())

    def revoke(self, id_: str) -> None:
        """Forget a token; its open bridge refuses from the next call on.

        Raises:
            NotFound: No token has this id.
        """
        for digest, binding in self._bindings.items():
            if binding.id == id_:
                del self._bindings[digest]
                return
        raise NotFound("token", id_)

    def _forget_expired(self) -> None:
        now = self._clock.monotonic()
        ended = [d for d, b in self._bindings.items() if b.expires_at <= now]
        for digest in ended:
            del self._bindings[digest]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def seen_origin(bound: str, header: str | None) -> str:
    """The origin that decisions go by: the page's own where the browser tells it.

    A browser writes the header ``Origin`` itself, so a page from elsewhere that got
    hold of a token of local content is still judged as what it is.
    """
    if header is None or bound != LOCAL or not _foreign(header):
        return bound
    return header


def _foreign(origin: str) -> bool:
    scheme, separator, rest = origin.partition("://")
    if scheme not in {"http", "https"} or not separator:
        return False
    host = rest.rpartition(":")[0] if rest.rpartition(":")[2].isdigit() else rest
    return not (host in {"localhost", "127.0.0.1", "[::1]"} or _is_local_name(host))


def _is_local_name(host: str) -> bool:
    return host.endswith(".localhost")
