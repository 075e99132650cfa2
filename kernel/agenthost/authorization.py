"""The one decision about rights: routes, tools and spawns all ask here."""

from __future__ import annotations

from .context import Principal
from .errors import Denied


def authorize(principal: Principal, action: str, resource: str) -> None:
    """Let the principal act on the resource, or refuse.

    Args:
        principal: Who acts.
        action: A right's name: ``route``, ``tool``, ``network``, ``memory_read``,
            ``memory_write``, ``agent_message``, ``agent_spawn``.
        resource: What it acts on: a route's scope, a tool's name, a host, a key.

    Raises:
        Denied: The principal's grants have no pattern for it.
    """
    if principal.grants is None or principal.grants.allow(action, resource):
        return
    raise Denied(
        f"{principal.kind} {principal.name!r} has no right {action!r} for {resource!r}"
    )
