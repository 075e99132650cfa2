"""Turns whose session goes with them, and of which mostly nothing is written."""

from __future__ import annotations

import asyncio
from functools import partial

from agenthost import NotFound, Step, Superseded


class FleetingTurns:
    """The steps of running turns that have a session of their own, without a key.

    It is gone when the turn has ended. Until then its rows are of use to nobody,
    unless the turn has an effect: that is journaled, and needs them.
    """

    def __init__(self) -> None:
        self._held: dict[str, tuple[Step, ...]] = {}

    def rows(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Choose what is written as rows with a turn's next steps.

        Those that were held back come first; nothing where these are held back, too,
        or where the turn has ended and none of its rows are on disk.
        """
        turn_id = steps[0].turn_id
        every = self._held.get(turn_id, ()) + steps
        first, last = every[0], every[-1]
        if first.opened is None or last.own is None or last.own.key is not None:
            return every
        if last.closed is not None:
            return ()
        if any(step.message and step.message.tool_uses for step in steps):
            return every
        self._held[turn_id] = every
        return ()

    def follow(self, steps: tuple[Step, ...], write: asyncio.Future[None]) -> None:
        """Forget what was held back once it is on disk, or its turn has ended there.

        Until then a write may fail: what closes a turn is tried again.
        """
        held = self._held.get(steps[0].turn_id)
        if held is not None and held[-1] is not steps[-1]:
            write.add_done_callback(partial(self._written, steps[0].turn_id))

    def _written(self, turn_id: str, write: asyncio.Future[None]) -> None:
        error = None if write.cancelled() else write.exception()
        # What has been deleted, or is another's, is not tried again.
        if not write.cancelled() and isinstance(error, NotFound | Superseded | None):
            self._held.pop(turn_id, None)
