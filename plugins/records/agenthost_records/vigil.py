"""Daemons that share a database watch over each other.

Each says that it lives. What one that has stopped saying so left running is marked as
interrupted, so that it can go on elsewhere, and its places in lines for sessions are
gone; should it come back, the steps of what it was at are refused, and it enters anew.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from agenthost import AgentHostError, Host, Writer
from agenthost_values.stillness import Stillness

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOOK = 0.5
"""Seconds between two looks, and between two signs of life."""
DEAD = 3.0
"""Seconds without a sign of life after which a daemon is taken for dead."""

_ALIVE = (
    "UPDATE nodes SET seen = :now WHERE node = :node AND epoch = :epoch RETURNING epoch"
)
_GONE = (
    "UPDATE nodes SET seen = 0 WHERE node = :node AND epoch = :epoch "
    "AND NOT EXISTS (SELECT 1 FROM session_holders WHERE node = :node)"
)
"""One that has not let go of all its sessions is left to be buried."""
_SEEN = "SELECT node, seen FROM nodes WHERE seen > 0"

log = logging.getLogger(__name__)


class Vigil:
    """One daemon's part of it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._others = Stillness(DEAD, gap=4 * LOOK)
        self._task: asyncio.Task[None] | None = None
        self._told = False

    def begin(self) -> None:
        """Watch from now on."""
        self._task = asyncio.create_task(self._watch(), name="vigil")

    async def end(self) -> None:
        """Watch no more, and say that this daemon leaves nothing."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self._host.store.change(_GONE, self._named())
        except AgentHostError as error:
            log.info("the other daemons were not told of the end: %s", error.message)

    async def look(self) -> None:
        """Give a sign of life, and see who has given none for long."""
        host = self._host
        try:
            now = {"now": host.clock.time()}
            alive = await host.store.change(_ALIVE, {**self._named(), **now})
            seen = {row["node"]: row["seen"] for row in await host.store.read(_SEEN)}
            me = host.writer.node
            if not alive and me not in seen:
                await self._enter_anew()
            elif not alive and not self._told:
                self._told = True
                log.error("another process has started as node %r; stop this one", me)
            seen.pop(me, None)
            for node, at in self._others.look(host.clock.monotonic(), seen):
                await self._bury(node, at)
        except AgentHostError:
            # Others cannot give a sign either, or this one cannot see it.
            self._others.forget()

    async def _watch(self) -> None:
        while True:
            await self.look()
            await self._host.clock.sleep(LOOK)

    async def _enter_anew(self) -> None:
        host = self._host
        log.warning("this daemon stood still, and was taken for dead; it goes on anew")
        host.writer = await host.journal.enter(host.writer.node)

    async def _bury(self, node: str, at: float) -> None:
        left = await self._host.store.write(partial(bury, node=node, at=at))
        if left is not None:
            log.warning(
                "node %r gives no sign of life; %d turns interrupted", node, left
            )

    def _named(self) -> dict[str, str | int]:
        writer = self._host.writer
        return {"node": writer.node, "epoch": writer.epoch}


def bury(connection: Connection, node: str, at: float) -> int | None:
    """Mark what a dead daemon has left; None when it lives or another was faster."""
    from sqlalchemy import update

    from .journal import mark_left
    from .tables import nodes

    ended = (
        update(nodes)
        .where(nodes.c.node == node, nodes.c.seen == at)
        .values(epoch=nodes.c.epoch + 1, seen=0)
        .returning(nodes.c.epoch)
    )
    epoch = connection.execute(ended).scalar_one_or_none()
    return None if epoch is None else mark_left(connection, Writer(node, epoch))
