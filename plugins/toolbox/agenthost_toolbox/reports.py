"""What a tool tells while it runs: its progress and lines of log, each bounded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import isfinite

from agenthost import Clock, Context, Reports, ToolProgress, ToolUse

log = logging.getLogger("agenthost.tools")

Progressed = Callable[[ToolProgress], object]

EVERY = 0.1
TEXT_CHARACTERS = 200
MOST_LINES = 100
LINE_CHARACTERS = 2_000
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class CallReports(Reports):
    """The reports of one call, taken until it ends.

    Progress is told ten times a second at most; what comes faster is passed over, save
    the end.
    """

    def __init__(
        self, context: Context, call: ToolUse, clock: Clock, progressed: Progressed
    ) -> None:
        self._context = context
        self._call = call
        self._clock = clock
        self._progressed = progressed
        self._next = float("-inf")
        self._complete = False
        self._lines = 0
        self._ended = False

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Tell who watches the turn, unless they were told just now."""
        now, complete = self._clock.monotonic(), total is not None and done >= total
        soon = now < self._next and (self._complete or not complete)
        if self._ended or soon or not isfinite(done):
            return
        if total is not None and not isfinite(total):
            total = None
        self._next, self._complete = now + EVERY, complete
        words = _line(text, TEXT_CHARACTERS)
        call = self._call
        self._progressed(ToolProgress(call.id, call.name, done, total, words))

    def log(self, level: str, text: str) -> None:
        """Write a line, up to a hundred for a call."""
        self._lines += 1
        if self._ended or self._lines > MOST_LINES:
            return
        agent, turn = self._context.agent, self._context.turn_id or "-"
        fields = {"agent": agent.name if agent else "-", "turn": turn}
        log.log(
            LEVELS.get(level, logging.INFO),
            "tool %s, agent %s, turn %s: %s",
            self._call.name,
            fields["agent"],
            turn,
            _line(text, LINE_CHARACTERS),
            extra={"tool": self._call.name, **fields},
        )
        if self._lines == MOST_LINES:
            log.warning("tool %s, turn %s: no more lines", self._call.name, turn)

    def end(self) -> None:
        """Take nothing more: the call has ended, its task may go on."""
        self._ended = True


def _line(text: str, most: int) -> str:
    return " ".join(text.split())[:most]
