"""With whose rights a response is made in the background: looked up when it is."""

from __future__ import annotations

from dataclasses import replace

from agenthost import (
    OPERATOR,
    Authenticator,
    Denied,
    Host,
    Principal,
    PrincipalKind,
    authorize,
    within,
)

PATIENCE = 5.0
NETWORK = "network"
"""The name of the operator's principal for clients of an open network."""


async def principal_of(host: Host, owner: str) -> Principal:
    """Give who asked for a response, with the rights they have now.

    Raises:
        Denied: They are gone, or may not speak with agents any more.
        Unavailable: Nobody can tell at the moment.
    """
    kind, _, name = owner.partition(":")
    found = _ours(host, kind, name) or await _recalled(host, kind, name)
    if found is None:
        raise Denied("whoever asked for this may not any more: revoked, expired, gone")
    authorize(found, "route", "agents:message")
    return found


def _ours(host: Host, kind: str, name: str) -> Principal | None:
    open_here = host.config.api_key is None
    match kind:
        case PrincipalKind.OPERATOR if name != NETWORK:
            return replace(OPERATOR, name=name)
        case PrincipalKind.OPERATOR:
            held = open_here and host.config.allow_unauthenticated_network
        case PrincipalKind.LOOPBACK:
            held = open_here
        case PrincipalKind.API_KEY:
            held = not open_here
        case _:
            held = False
    return Principal(kind, name) if held else None


async def _recalled(host: Host, kind: str, name: str) -> Principal | None:
    for key, authenticator in host.registry.offered(Authenticator):
        asking = authenticator.recall(host, kind, name)
        found = await within(PATIENCE, f"recall of {key}", asking)
        if found is not None:
            return found
    return None
