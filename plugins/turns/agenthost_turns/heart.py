"""The heartbeat: turns that give no sign of life end, and their agents have crashed.

Only agents whose manifest asks for it are watched. What a turn says, and each of its
steps, is a sign of life; who waits for its place, or for another agent, needs none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agenthost import InvalidInput, Turn, TurnState, Work

from .manifest import HEARTBEAT

if TYPE_CHECKING:
    from .parts import Parts

LOOK = 5.0
"""Seconds between two looks."""
BEATS = 2
"""So many heartbeats may be missed."""
Signs = tuple[int, int]


class Heart:
    """Looks at the running turns again and again.

    Args:
        parts: What the engine works with.
        live: All that runs or waits, by its id.
    """

    def __init__(self, parts: Parts, live: Mapping[str, Work]) -> None:
        self._parts = parts
        self._live = live
        self._seen: dict[str, tuple[Signs, float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0

    def begin(self) -> None:
        """Look from now on."""
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._again)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """End what has given no sign for too long."""
        now = self._parts.clock.monotonic()
        # The daemon has stood still itself: then no turn could give a sign.
        before = self._seen if now - self._looked < 2 * LOOK else {}
        self._looked, self._seen = now, {}
        for turn, patience in [*self._watched()]:
            signs = turn.offset, len(turn.spoken)
            known = before.get(turn.id)
            since = known[1] if known and known[0] == signs else now
            self._seen[turn.id] = signs, since
            if now - since >= patience:
                self._lost(turn, patience)

    def _again(self) -> None:
        self.begin()
        self.look()

    def _watched(self) -> Iterator[tuple[Turn, float]]:
        for work in self._live.values():
            # Who waits for another agent needs no sign.
            if not isinstance(work, Turn) or not work.runs or work.asked or work.ended:
                continue
            if beat := _beat(work):
                yield work, float(BEATS * beat)

    def _lost(self, turn: Turn, patience: float) -> None:
        reason = f"it gave no sign of life for {patience:g} seconds"
        if turn.cancel(reason, TurnState.FAILED):
            self._parts.agents.crash(turn.agent.id, f"a turn was ended: {reason}")


def _beat(turn: Turn) -> int:
    try:
        return HEARTBEAT.of(turn.agent.manifest).heartbeat_interval_secs
    except InvalidInput:
        # It was written when nobody read it.
        return 0
