"""What an outbound client may do: one connection pool for each distinct policy."""

from __future__ import annotations

from dataclasses import dataclass

CHECK_HOST = "agenthost.check_host"
"""Request extension: ``(host) -> None``, called for every hop; raises to refuse it."""

FINAL_URL = "agenthost.url"
"""Response extension: the URL that answered, after redirects."""


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The limits of one outbound client.

    Policies come from code and configuration, never from a request, so their number
    stays small; two that differ in any field never share a connection.

    Args:
        name: Who asks; a part of the pool's identity.
        allowed_hosts: Host names, addresses, networks (``10.0.0.0/8``) and
            ``*.domain`` patterns that the operator configured; they may be local.
        timeout: Seconds to connect, and between two reads.
        total_timeout: Seconds for the whole exchange, redirects and body included.
        max_bytes: Largest decoded body.
        max_redirects: Redirects followed, each checked like a first request; with 0
            a redirect is handed back as it came.
    """

    name: str
    allowed_hosts: frozenset[str] = frozenset()
    timeout: float = 30.0
    total_timeout: float | None = None
    max_bytes: int | None = None
    max_redirects: int = 0
