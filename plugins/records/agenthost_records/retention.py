"""How long the rows of usage, turns and tool calls are kept: 90 days."""

from __future__ import annotations

import logging
from functools import partial
from itertools import takewhile

from agenthost import AgentHostError, Clock, Store

from .forgetting import LEFT, REACHED, SPOKEN, forget_turns
from .rollup import BATCH, DAY, roll_up
from .session_rows import erase
from .tables import KV_INDEX
from .texts import TEXT_INDEX
from .word_index import scrub

KEPT = 90 * DAY
HOUR = 3_600.0
BETWEEN = HOUR
PAUSE = 0.05
"""Seconds between two writes, which leave the disk to everybody else."""
MOST_WRITES = 2_000
"""Writes of a kind in one pass; the next pass goes on."""

log = logging.getLogger(__name__)


class Retention:
    """Once an hour, in small writes, takes out what is older than 90 days.

    Usage goes into sums by day first. Messages are never taken out.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Work until it is cancelled."""
        while True:
            try:
                await self.once()
            except AgentHostError as error:
                log.warning("old rows are kept for another hour: %s", error.message)
            await self._clock.sleep(BETWEEN)

    async def once(self) -> None:
        """Take out what is old now.

        Raises:
            AgentHostError: The store cannot be read or written.
        """
        before = self._clock.time() - KEPT
        await self._erase_ephemeral()
        await self._scrub()
        for part in (self._roll_up, self._forget):
            for _ in range(MOST_WRITES):
                if not await part(before):
                    break
                await self._clock.sleep(PAUSE)

    async def _erase_ephemeral(self) -> None:
        """Take out what nobody ended, and what was kept to be asked for again."""
        now = self._clock.time()
        before = {"before": now - DAY, "left_before": now - HOUR}
        for _ in range(MOST_WRITES):
            left = await self._store.first(LEFT, before)
            if left is None:
                break
            await self._store.write(partial(erase, session_id=left["id"]))
            await self._clock.sleep(PAUSE)

    async def _scrub(self) -> None:
        """Take what was deleted out of the indexes of words, in the file too."""
        for index in (KV_INDEX, TEXT_INDEX):
            for _ in range(MOST_WRITES):
                if not await scrub(self._store, index):
                    break
                await self._clock.sleep(PAUSE)

    async def _roll_up(self, before: float) -> bool:
        """Sum up some usage; tell whether there may be more."""
        return await self._store.write(partial(roll_up, before=before)) == BATCH

    async def _forget(self, before: float) -> bool:
        """Take out some turns; tell whether there may be more."""
        mark = await self._store.first(REACHED)
        rows = await self._store.read(SPOKEN, {"after": mark["value"] if mark else 0})
        # A fork's messages are old and stand behind younger ones: these wait for them.
        old = [*takewhile(lambda row: row["created_at"] < before, rows)]
        if not old:
            return False
        spoken = {row["turn_id"] for row in old if row["turn_id"] is not None}
        forget = partial(forget_turns, spoken=[*spoken], reached=old[-1]["id"])
        await self._store.write(forget)
        return True
