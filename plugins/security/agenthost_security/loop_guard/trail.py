"""What was called in a turn, or among agents, and whether anything came of it.

A call makes progress when it, or what it says, was not there before. A run of calls
without progress is a loop, whatever its period: the shorter that is, the fewer calls
show it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any

from .settings import LoopGuardSection

REMEMBERED = 512
LONGEST_PERIOD = 16
LONGEST_RUN = 512
PATIENCE = 3
LONGEST_NAME = 200
"""No tool is called by more; a model may ask for one by a megabyte."""
BACKOFF = (5.0, 10.0, 30.0, 60.0)
"""Seconds between polls; the last one for ever."""
_MORE = (0, 1, 3)
"""How many calls without progress more it takes, by the loop's period."""


class Trail:
    """The calls of one turn, as far as they tell a loop; bounded, however many.

    Args:
        limits: When it is one.
    """

    def __init__(self, limits: LoopGuardSection) -> None:
        self._limits = limits
        self._polling = _any_of(limits.polling)
        self._seen: dict[tuple[int, int], None] = {}
        self._keys: dict[int, None] = {}
        self._polls: dict[int, float] = {}
        self._run: list[int] = []
        self._pending: Counter[int] = Counter()
        self._refused: Counter[int] = Counter()

    @property
    def hopeless(self) -> bool:
        """Whether calls go on alike that nobody could refuse, as they never begin."""
        return len(self._run) > self._stop

    def begins(self, key: int, tool: str, now: float) -> str:
        """Take a call that is about to begin; say why not, if it is one of a loop."""
        if self._polling.fullmatch(tool[:LONGEST_NAME]):
            if now - self._polls.get(key, now) >= self._advice:
                # Who waits as long as it was told is in no loop.
                self._run.clear()
            _remember(self._polls, key, now)
        if key in self._keys and len(self._run) >= self._stop:
            return self.refuse(key, self._problem(tool))
        self._pending[key] += 1
        return ""

    def together(self, key: int) -> int:
        """Say how many such calls run; too many of one answer are not of a loop yet."""
        running = self._pending[key]
        return running if running >= self._limits.stop_at - 1 else 0

    def refuse(self, key: int, problem: str) -> str:
        """Note that the call does not begin, and why."""
        self._refused[key] += 1
        return problem

    def ended(self, key: int, result: int) -> bool:
        """Take what came of a call; tell whether it was one that was refused here."""
        _count_down(self._pending, key)
        if self._refused[key]:
            _count_down(self._refused, key)
            return True
        if (key, result) not in self._seen:
            self._run.clear()
            _remember(self._seen, (key, result), None)
            _remember(self._keys, key, None)
        elif len(self._run) < LONGEST_RUN:
            self._run.append(key)
        return False

    def warning(self, tool: str) -> str:
        """Say what the model should know behind a result; nothing mostly."""
        warn = self._factor * self._limits.warn_at - 1 + self._extra
        if len(self._run) < warn:
            return ""
        if self._factor > 1:
            return (
                f"nothing has changed; wait {self._advice:.0f} s before the next call"
            )
        return f"{self._problem(tool)}; do something else, or say what you know"

    def _problem(self, tool: str) -> str:
        period = _period(self._run)
        calls = len(self._run) + period
        if period == 1:
            return f"{tool} was called {calls} times alike and said the same each time"
        return f"the last {calls} calls repeat {period} that bring nothing new"

    @property
    def _extra(self) -> int:
        return _MORE[min(_period(self._run), len(_MORE)) - 1]

    @property
    def _factor(self) -> int:
        return PATIENCE if self._run and self._polls.keys() >= {*self._run} else 1

    @property
    def _stop(self) -> int:
        return self._factor * self._limits.stop_at - 2 + self._extra

    @property
    def _advice(self) -> float:
        return BACKOFF[min(len(self._run) // PATIENCE, len(BACKOFF) - 1)]


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Read patterns; once for all turns, which mostly have the same."""
    return re.compile("|".join(map(translate, patterns)) or "(?!)")


def _period(run: Sequence[int]) -> int:
    """Give the shortest period of a run; its length, where none repeats in it."""
    for period in range(1, min(len(run), LONGEST_PERIOD + 1)):
        if run[period:] == run[:-period]:
            return period
    return max(len(run), 1)


def _count_down(known: Counter[int], key: int) -> None:
    known[key] -= 1
    if known[key] <= 0:
        del known[key]


def _remember(known: dict[Any, Any], key: object, value: object) -> None:
    known[key] = value
    if len(known) > REMEMBERED:
        known.pop(next(iter(known)))
