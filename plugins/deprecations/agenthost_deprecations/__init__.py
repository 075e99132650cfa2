"""What plugins use that is going to be removed is told when the daemon starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from agenthost import Host, ServiceSpec, hookimpl


async def start(host: Host) -> None:
    """Read the plugins of others, where there is something to look for."""
    states = [s for s in host.plugins.states() if host.plugins.healthy(s.key)]
    others = [state for state in states if not state.first_party]
    if others:
        from .scan import table, warnings_of

        if rows := table():
            host.warnings.extend(await asyncio.to_thread(warnings_of, others, rows))


async def stop(_: Host) -> None:
    """Nothing is left."""


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer the look at the start."""
    yield ServiceSpec("deprecations", start, stop)
