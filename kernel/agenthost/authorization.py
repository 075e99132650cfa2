"""The one decision about rights: routes, tools and spawns all ask here."""

from __future__ import annotations

from .context import Principal
from .errors import Denied


class Refused(Denied):
    """A principal has no right to do this."""

    def __init__(self, principal: Principal, action: str, resource: str) -> None:
        who = f"{principal.kind} {principal.name!r}"
        super().__init__(f"{who} has no right {action!r} for {resource!r}")
        self.principal, self.action, self.resource = principal, action, resource


def authorize(principal: Principal, action: str, resource: str) -> None:
    """Let the principal act on the resource, or refuse.

    Args:
        principal: Who acts.
        action: A right's name: ``route``, ``tool``, ``network``, ``memory_read``,
            ``memory_write``, ``agent_message``, ``agent_spawn``.
        resource: What it acts on: a route's scope, a tool's name, a host, a key.

    Raises:
        Refused: The principal's grants have no pattern for it. Observers are told by
            who answers for the call: the front, and what runs tools.
    """
    if principal.grants is None or principal.grants.allow(action, resource):
        return
    raise Refused(principal, action, resource)
