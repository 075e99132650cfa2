"""Health: the truth of flags that are kept up to date, and an event when it changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from agenthost import AgentHostError, HealthChanged, Host, within

from .system_shapes import Health

STALL_REMEMBERED = 60.0
LOOKED_AT_EVERY = 4.0


def health_of(host: Host) -> Health:
    """Tell how the daemon is; this is asked all the time."""
    plugins = host.plugins
    well = (
        host.store.healthy
        and not plugins.failed
        and not host.guards.closed
        and host.clock.time() - plugins.charges.last_stall > STALL_REMEMBERED
        and not any(listener.given_up for listener in host.events.states())
    )
    return {
        "status": "ok" if well else "degraded",
        "uptime_seconds": host.uptime,
        "panic_count": host.panics,
        "restart_count": host.agents.restarts,
    }


class HealthWatch:
    """Tells when the health of one daemon changes."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def start(self, host: Host) -> None:
        """Look from now on."""
        self._task = asyncio.create_task(_watch(host))

    async def stop(self, _: Host) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _watch(host: Host) -> None:
    before = health_of(host)["status"]
    while True:
        # Not the daemon's clock: one that tests move on would have this look for ever.
        await asyncio.sleep(LOOKED_AT_EVERY)
        # A database that is lost while nobody writes would be found by chance.
        with suppress(AgentHostError):
            await within(LOOKED_AT_EVERY, "the look at it", host.store.probe())
        now = health_of(host)["status"]
        if now != before and host.events.wants(HealthChanged):
            host.events.publish(HealthChanged("daemon", host.clock.time(), now))
        before = now
