"""Runs that wait for people: each goes on once one of its turns does, without a job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agenthost import AgentHostError, Host, Turn, TurnEnded, TurnState

from .spending import Spending

WAITS = frozenset({TurnState.WAITING.value})

log = logging.getLogger(__name__)


class People:
    """Notes the turns that runs wait for, and lets a run go on when one of them does.

    Args:
        host: The daemon.
        go_on: Called with the id of a run that is to look again.
    """

    def __init__(self, host: Host, go_on: Callable[[str], Awaitable[None]]) -> None:
        self._host = host
        self._go_on = go_on
        self._turns: dict[str, str] = {}
        self._spending: dict[str, Spending] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._deaf: list[Callable[[], None]] = []

    async def expect(
        self, run_id: str, turns: Sequence[str], spending: Spending
    ) -> None:
        """Let the run go on when one of the turns does, or if one has already.

        Args:
            run_id: The run.
            turns: The ids of the turns that it waits for.
            spending: What those draw from when they go on.
        """
        self._turns |= dict.fromkeys(turns, run_id)
        self._spending[run_id] = spending
        if not self._deaf:
            self._deaf = [
                self._host.turns.listen(self._began),
                self._host.events.subscribe(self._ended, TurnEnded),
            ]
        for turn_id in turns:
            known = await self._host.journal.find(turn_id)
            if known is None or known.state is not TurnState.WAITING:
                self._wake(turn_id)

    def forget(self, run_id: str) -> None:
        """Wait no longer for what the run waits for."""
        for turn_id in [turn for turn, run in self._turns.items() if run == run_id]:
            del self._turns[turn_id]
        self._spending.pop(run_id, None)
        if not self._turns:
            for stop in self._deaf:
                stop()
            self._deaf = []

    async def stop(self) -> None:
        """End; the next start looks for all of them again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for run_id in set(self._turns.values()):
            self.forget(run_id)

    def _began(self, turn: Turn) -> None:
        spending = self._spending.get(self._turns.get(turn.id, ""))
        if spending is not None:
            turn.context = replace(turn.context, pools=spending.pools(turn.id))
        self._wake(turn.id)

    def _ended(self, event: TurnEnded) -> None:
        if event.state not in WAITS:
            self._wake(event.turn_id)

    def _wake(self, turn_id: str) -> None:
        run_id = self._turns.get(turn_id)
        if run_id is None:
            return
        self.forget(run_id)
        task = asyncio.create_task(self._carry_on(run_id), name="answered run")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_on(self, run_id: str) -> None:
        try:
            await self._go_on(run_id)
        except AgentHostError as error:
            # Its row says that it waits: the next start takes it up.
            log.warning("run %s does not go on: %s", run_id, error.message)
