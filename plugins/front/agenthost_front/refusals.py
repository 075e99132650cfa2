"""Refused requests are told and so in the audit trail; a flood is counted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from agenthost import (
    AgentHostError,
    Denied,
    Event,
    PrincipalKind,
    Unauthenticated,
)

from .dispatch import Endpoint, Exchange, SocketEndpoint

if TYPE_CHECKING:
    from agenthost import Host

MINUTE = 60.0
MOST = 16
"""So many are told apart at once: whoever has more addresses than that is others."""
OTHERS = "others"

Who = tuple[str, int]
"""A principal or an address, and the status that it gets."""


class AccessRefused(Event):
    """A known route was refused; the subject is who asked, or from which address.

    The first time is told at once, what follows within a minute as so many ``times``;
    ``client`` and ``route`` are then those of the last.
    """

    status: int
    client: str
    route: str
    reason: str
    times: int


class Refusals:
    """Tells who is refused, and how often: a row a minute for each, of 16 at most.

    Nothing waits for it: a refusal changes nothing that it could be committed with.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        # Of each the last that is not told yet: what is counted takes no room.
        self._waiting: dict[Who, AccessRefused | None] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._pauses: set[asyncio.Task[None]] = set()
        self._ended = False

    def note(self, exchange: Exchange, error: BaseException) -> None:
        """Count a request that was refused for who asks, if it was."""
        if not isinstance(error, Unauthenticated | Denied) or self._ended:
            return
        found = exchange.found
        if not isinstance(found, Endpoint | SocketEndpoint):
            return
        if self._host.events.wants(AccessRefused):
            self._count(exchange, error, f"{exchange.method} {found.route.path}")

    def _count(self, exchange: Exchange, error: AgentHostError, route: str) -> None:
        principal, waiting = exchange.principal, self._waiting
        named = principal.kind is not PrincipalKind.ANONYMOUS
        by = f"{principal.kind}:{principal.name}" if named else ""
        who = (by or exchange.client, error.status)
        if who not in waiting and len(waiting) >= MOST:
            who, by = (OTHERS, error.status), ""
        begins, before = who not in waiting, waiting.get(who)
        times = 1 if before is None else before.times + 1
        told = error.status, exchange.client, route, error.code, times
        waiting[who] = AccessRefused(who[0], self._host.clock.time(), *told, by=by)
        if begins:
            task = asyncio.create_task(self._tell(who))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, who: Who) -> None:
        """Tell of the first, and each minute of those since, until there were none."""
        while (event := self._waiting[who]) is not None:
            self._waiting[who] = None
            await self._write(event)
            if not self._ended:
                await self._pause()
        del self._waiting[who]

    async def _pause(self) -> None:
        pause = asyncio.ensure_future(self._host.clock.sleep(MINUTE))
        self._pauses.add(pause)
        # Not awaited itself: the end cancels the pause, and not what is behind it.
        await asyncio.wait({pause})
        self._pauses.discard(pause)

    async def _write(self, event: AccessRefused) -> None:
        # While the trail takes nothing everything is refused; this stays a refusal.
        with suppress(AgentHostError):
            keep = self._host.events.keeping(event)
            if keep is not None:
                await self._host.store.write(keep)
            self._host.events.publish(event)

    async def stop(self) -> None:
        """Tell what was counted since the last minute."""
        self._ended = True
        for pause in self._pauses:
            pause.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)
