"""``GET /api/security``: which protections have just proved themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agenthost import Answer, Call, Host, RouteGroup, SystemState

from .system_shapes import SecurityReport

SYSTEMS = (
    "merkle_audit_trail",
    "taint_tracking",
    "wasm_dual_metering",
    "security_headers",
    "health_redaction",
    "subprocess_sandbox",
    "manifest_signing",
    "gcra_rate_limiter",
    "secret_zeroization",
    "path_traversal_prevention",
    "ssrf_protection",
    "capability_inheritance_validation",
    "ofp_hmac_auth",
    "prompt_injection_scanning",
    "loop_guard",
    "session_repair",
)
"""What people count on; one that no plugin offers is not active."""
ABSENT = "no enabled plugin offers it"
FRESH = 5.0
"""Seconds for which a proof counts."""


class Proofs:
    """The proofs of one daemon: one round at a time, for whoever asks meanwhile."""

    def __init__(self) -> None:
        self._round = asyncio.Lock()
        self._states: Sequence[SystemState] = ()
        self._until = float("-inf")

    async def of(self, host: Host) -> Sequence[SystemState]:
        """Have every system prove itself, unless it did so a few seconds ago."""
        async with self._round:
            if host.clock.monotonic() >= self._until:
                await host.registry.prove()
                self._until = host.clock.monotonic() + FRESH
        # One may have failed since.
        return host.registry.systems()


def security_routes() -> RouteGroup:
    """Make the route; what was proven is remembered for each daemon."""
    routes, proofs = RouteGroup("security"), Proofs()

    @routes.get("/api/security", scope="system:read", answer=SecurityReport)
    async def security(call: Call) -> Answer:
        """Have every security system prove itself; a proof counts for 5 seconds."""
        return _report(await proofs.of(call.host))

    return routes


def _report(states: Sequence[SystemState]) -> SecurityReport:
    proven = {state.name: state for state in states}
    names = [*SYSTEMS, *sorted(proven.keys() - {*SYSTEMS})]
    active = {name: name in proven and proven[name].active for name in names}
    reasons = {
        name: (proven[name].reason if name in proven else ABSENT) or "it has failed"
        for name in names
        if not active[name]
    }
    return {
        "security_systems": {
            name: "active" if active[name] else "inactive" for name in names
        },
        "total_systems": len(names),
        "all_active": all(active.values()),
        "reasons": reasons,
    }
