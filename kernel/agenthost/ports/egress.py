"""The port EGRESS: the one way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agenthost_values.value_class import value_class

if TYPE_CHECKING:
    import httpx

    from ..providers import Exchange

CHECK_HOST = "agenthost.check_host"
"""Request extension: ``(host) -> None``, called for every hop; raises to refuse it."""

CONTEXT = "agenthost.context"
"""Request extension: the :class:`Context` the request is made in, told to guards."""

FINAL_URL = "agenthost.url"
"""Response extension: the URL that answered, after redirects."""


@value_class
class EgressPolicy:
    """What requests of one purpose may reach and how much they may take.

    Requests of one policy share connections; those of different policies never do.

    Args:
        name: The purpose, such as ``web_fetch``.
        allowed_hosts: Names, addresses, networks (CIDR) and ``*.domain`` patterns that
            the operator configured by hand; these may be local.
        timeout: Seconds to connect, and between two reads or writes.
        total_timeout: Seconds for one request in all, redirects included.
        max_bytes: The largest body, counted after decompression.
        max_redirects: Redirects to follow, each checked anew; 0 hands them back.
    """

    name: str
    allowed_hosts: frozenset[str] = frozenset()
    timeout: float = 30.0
    total_timeout: float | None = None
    max_bytes: int | None = None
    max_redirects: int = 0


class Egress(Protocol):
    """The one way out: every outbound request passes its guards."""

    @property
    def exchange(self) -> Exchange:
        """How model calls meet HTTP."""

    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        """Return the client of a policy; it is shared and must not be closed."""

    async def warm_up(self) -> None:
        """Do what the first request would wait for, off the event loop."""

    async def close(self) -> None:
        """Close all connections."""
