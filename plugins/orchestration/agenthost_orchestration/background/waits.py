"""Turns of occasions: what they may spend, and those that wait for a person.

A turn that has waited goes on when it is answered, started by whoever asked. It is to
go on within the same limits, and its occasion with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from agenthost import Host, Turn, TurnEnded, TurnState

from .purses import Spending

GOES_ON = frozenset({TurnState.WAITING, TurnState.INTERRUPTED})


class Waits:
    """The turns of one daemon's occasions that run or wait.

    Args:
        host: The daemon.
        ended: Called with an occasion whose turn waited and has ended.
    """

    def __init__(self, host: Host, ended: Callable[[str], None]) -> None:
        self._host = host
        self._ended = ended
        self._known: dict[str, tuple[Spending, int]] = {}
        self._waiting: set[str] = set()
        self._deaf: list[Callable[[], None]] = []
        self._unheard: Callable[[], None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, occasion_id: str, spending: Spending, depth: int) -> None:
        """See to it that the turn of an occasion stays within its limits."""
        if not self._known:
            self._deaf.append(self._host.turns.listen(self._turn_begins))
        self._known[occasion_id] = (spending, depth)

    def wait(self, occasion_id: str) -> None:
        """Hear when the turn has ended."""
        self._waiting.add(occasion_id)
        if self._unheard is None:
            # Only now: of a kind that nobody listens for no event is made.
            subscribe = self._host.events.subscribe
            self._unheard = subscribe(self._turn_ended, TurnEnded)

    def wait_for(self, occasion_id: str, ends: Coroutine[Any, Any, None]) -> None:
        """Wait for a workflow's run, which may wait for a person for days."""
        self._waiting.add(occasion_id)
        task = asyncio.create_task(ends, name="occasion's run")
        self._tasks.add(task)
        task.add_done_callback(partial(self._run_ended, occasion_id))

    def _run_ended(self, occasion_id: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # One that is gone has ended too: what came of it is asked for in a job.
            task.exception()
            self.ended_already(occasion_id)

    def ended_already(self, occasion_id: str) -> None:
        """Take note that the turn had ended before anybody heard of it."""
        if occasion_id in self._waiting:
            self._waiting.discard(occasion_id)
            self._ended(occasion_id)

    def end(self, occasion_id: str) -> Spending | None:
        """Forget a turn; give what it spent."""
        self._waiting.discard(occasion_id)
        known = self._known.pop(occasion_id, None)
        if not self._known:
            self._stop_listening()
        if not self._waiting and self._unheard is not None:
            self._unheard()
            self._unheard = None
        return None if known is None else known[0]

    def spending(self, occasion_id: str) -> Spending | None:
        """What a turn that runs or waits may spend."""
        known = self._known.get(occasion_id)
        return None if known is None else known[0]

    def stop(self) -> None:
        """Hear no more."""
        for task in self._tasks:
            task.cancel()
        self._waiting.clear()
        self._known.clear()
        self._stop_listening()
        if self._unheard is not None:
            self._unheard()
            self._unheard = None

    def _stop_listening(self) -> None:
        for end in self._deaf:
            end()
        self._deaf.clear()

    def _turn_begins(self, turn: Turn) -> None:
        known = self._known.get(turn.id)
        if known is not None:
            spending, depth = known
            turn.context = replace(turn.context, pools=spending.pools, depth=depth)

    def _turn_ended(self, event: TurnEnded) -> None:
        if event.turn_id in self._waiting and event.state not in GOES_ON:
            self._waiting.discard(event.turn_id)
            self._ended(event.turn_id)
