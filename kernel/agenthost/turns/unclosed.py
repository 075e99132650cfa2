"""Turns whose last row a failing store did not take."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import AgentHostError

if TYPE_CHECKING:
    from ..daemon import Daemon
    from ..record_port import Step

TRY_AFTER = 1.0


class Unclosed:
    """Closes them as soon as the store takes rows again."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._steps: dict[str, Step] = {}
        self._task: asyncio.Task[None] | None = None

    def keep(self, step: Step) -> None:
        """Remember what closes a turn; until it is written the row says running."""
        self._steps[step.turn_id] = step
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._close_all())

    async def close(self, session_id: str) -> None:
        """Close what is left of a session, before its next turn.

        Raises:
            AgentHostError: The store still takes nothing.
        """
        for step in list(self._steps.values()):
            if step.session_id == session_id:
                await self._write(step)

    async def give_up(self) -> None:
        """Try no more: the next start of the daemon closes what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _close_all(self) -> None:
        while self._steps:
            await asyncio.sleep(TRY_AFTER)
            for step in list(self._steps.values()):
                with suppress(AgentHostError):
                    await self._write(step)

    async def _write(self, step: Step) -> None:
        await self._daemon.journal.keep(step)
        self._steps.pop(step.turn_id, None)
