"""Keeps on disk what agents have transferred, so that a restart forgets nothing.

It is written every minute and at the end: a daemon that is killed forgets a minute.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from agenthost import AgentHostError, Host

from .client import AiohttpEgress

if TYPE_CHECKING:
    from .traffic import Traffic

log = logging.getLogger(__name__)
WRITE_SECONDS = 60.0
_KNOWN = (
    "SELECT agent_id, at, size FROM egress_transfers "
    "WHERE node = :node AND at > :since ORDER BY at"
)


class Ledger:
    """Reads and writes the meters of a daemon."""

    def __init__(self) -> None:
        self._keeping: asyncio.Task[None] | None = None

    async def start(self, host: Host) -> None:
        """Begin; nobody waits for it."""
        if isinstance(host.egress, AiohttpEgress):
            self._keeping = asyncio.create_task(self._keep(host, host.egress))

    async def stop(self, host: Host) -> None:
        """Write what is left."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        if isinstance(host.egress, AiohttpEgress):
            await self._write(host, host.egress.traffic)

    async def _keep(self, host: Host, egress: AiohttpEgress) -> None:
        try:
            await self._read(host, egress)
        except AgentHostError as error:
            log.warning("what agents transferred before is not known: %s", error)
        while True:
            # Real time: a minute of a test's clock is none of the disk's.
            await asyncio.sleep(WRITE_SECONDS)
            await self._write(host, egress.traffic)

    async def _read(self, host: Host, egress: AiohttpEgress) -> None:
        from .traffic import HOUR

        now = host.clock.time()
        where: dict[str, Any] = {"node": host.config.node, "since": now - HOUR}
        rows = await host.store.read(_KNOWN, where)
        if rows:
            traffic = egress.traffic or egress.metered()
            traffic.recall(now, [tuple(row) for row in rows])

    async def _write(self, host: Host, traffic: Traffic | None) -> None:
        if traffic is None:
            return
        now = host.clock.time()
        changed = traffic.changed(now)
        if not changed:
            return
        # SQLAlchemy: not before there is something to write.
        from .tables import keep
        from .traffic import HOUR

        rows = [
            {"agent_id": agent_id, "at": at, "size": size}
            for agent_id, slots in changed.items()
            for at, size in slots
        ]
        node, agents = host.config.node, [*changed]
        write = partial(keep, node=node, since=now - HOUR, agents=agents, rows=rows)
        try:
            await host.store.write(write)
        except AgentHostError as error:
            log.warning("what agents transferred is not on disk: %s", error)
            traffic.unwritten(changed)
