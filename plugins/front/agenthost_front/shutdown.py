"""The order of death."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from .gate import Gate
from .layer import Layer
from .sockets import Sockets

EndTurns = Callable[[], Awaitable[None]]


class Shutdown:
    """Ends a front step by step; each step may be asked for again.

    Refuse new work, end turns, close streams and sockets, then (:meth:`finish`) end
    what still runs. The caller stops the server next and closes the store last.
    """

    def __init__(self, gate: Gate, layer: Layer, sockets: Sockets) -> None:
        self._gate = gate
        self._layer = layer
        self._sockets = sockets

    async def drain(self, end_turns: EndTurns | None) -> None:
        """Refuse new work, end the turns, then close streams and sockets."""
        self._gate.draining = True
        if end_turns is not None:
            await end_turns()
        self._layer.streams.end()
        await self._sockets.end()
        await self._rest(self._gate.settings.grace)

    async def finish(self) -> None:
        """Cancel the requests that still run and wait for them."""
        self._gate.draining = True
        for task in self._others():
            buffered = self._layer.running[task]
            if buffered is not None:
                buffered.leave()
            else:
                task.cancel()
        await self._rest(1.0)

    async def _rest(self, seconds: float) -> None:
        others = self._others()
        if others:
            await asyncio.wait(others, timeout=seconds)

    def _others(self) -> set[asyncio.Task[None]]:
        # The request that asked for the shutdown must not wait for itself.
        return {t for t in self._layer.running if t is not asyncio.current_task()}
