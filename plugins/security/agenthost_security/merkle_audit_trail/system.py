"""The security system, which knows the trail of its daemon."""

from __future__ import annotations

from agenthost import Host, SecuritySystem, Unavailable

from .trail import Trail

POINT = "audit"
"""Where everything that is recorded is asked about before it happens."""


class AuditSystem(SecuritySystem):
    """The system of one daemon.

    Attributes:
        trail: What it proves.
    """

    trail: Trail

    def __init__(self) -> None:
        trail = Trail()
        object.__setattr__(self, "trail", trail)
        super().__init__(
            "merkle_audit_trail", {POINT: trail.may_happen}, trail.self_test
        )


def trail_of(host: Host) -> Trail:
    """Find the trail of a daemon.

    Raises:
        Unavailable: Its plugin has failed.
    """
    for _, system in host.registry.offered(SecuritySystem):
        if isinstance(system, AuditSystem):
            return system.trail
    raise Unavailable("there is no audit trail: merkle_audit_trail has failed")
