"""Turns whose last row a failing store did not take."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from agenthost import NotFound, Step, Superseded

TRY_AFTER = 1.0

log = logging.getLogger(__name__)


class LateSteps:
    """Writes them as soon as the store takes rows again.

    Args:
        write: Writes a step in one piece.
    """

    def __init__(self, write: Callable[[Step], asyncio.Future[None]]) -> None:
        self._write_step = write
        self._steps: dict[str, Step] = {}
        self._task: asyncio.Task[None] | None = None

    def keep(self, step: Step) -> None:
        """Remember what closes a turn; until it is written the row says running."""
        self._steps[step.turn_id] = step
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all())

    async def close(self, session_id: str) -> None:
        """Write what is left of a session, before its next turn.

        Raises:
            AgentHostError: The store still takes nothing.
        """
        for step in list(self._steps.values()):
            if step.session_id == session_id:
                await self._write(step)

    async def stop(self) -> None:
        """Try no more: the next start of the daemon closes what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _write_all(self) -> None:
        while self._steps:
            await asyncio.sleep(TRY_AFTER)
            for step in list(self._steps.values()):
                # Meanwhile its session's next turn may have seen to it; and whatever
                # the store raises for one, the others are written.
                if self._steps.get(step.turn_id) is step:
                    with suppress(Exception):
                        await self._write(step)

    async def _write(self, step: Step) -> None:
        try:
            await self._write_step(step)
        except (Superseded, NotFound) as error:
            # Another has it by now, or it has been deleted: nothing is left to close.
            log.warning("turn %s is not closed here: %s", step.turn_id, error.message)
        self._steps.pop(step.turn_id, None)
