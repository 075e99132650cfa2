"""Call a plugin's code, and go on without it when it blocks or never ends."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import AgentHostError, PluginError, Unavailable

_log = logging.getLogger(__name__)
T = TypeVar("T")

SLOW = 1.0


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What came of a call: a value, or the reason why there is none."""

    value: T | None = None
    reason: str | None = None


async def guarded_each(
    calls: Sequence[tuple[str, Callable[[], T]]], budget: float
) -> list[Outcome[T]]:
    """Run calls one after another in a thread, each for at most ``budget`` seconds.

    A call that overruns is left behind with its thread, since Python cannot end it,
    and the rest runs in another.

    Args:
        calls: What is called, by its name for the log and the reason; functions of
            plugins may raise anything.
        budget: Seconds after which a call is given up.
    """
    outcomes: list[Outcome[T]] = []
    while len(outcomes) < len(calls):
        outcomes += await _Batch(calls[len(outcomes) :]).finish(budget)
    return outcomes


async def within(seconds: float, what: str, doing: Awaitable[T]) -> T:
    """Await it for so long at most; what ignores its cancellation is left behind.

    Args:
        seconds: How long.
        what: Its name for the errors.
        doing: Code of a plugin; it may raise anything.

    Raises:
        Unavailable: It takes longer.
        PluginError: It wanted to end the daemon, or cancelled itself.
    """
    # In a task of its own: a time limit in ours would wait for code that swallows
    # its cancellation.
    task = asyncio.ensure_future(_contained(what, doing))
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
    if not task.done():
        raise Unavailable(f"{what} took longer than {seconds:g} s")
    if task.cancelled():
        raise PluginError(f"{what} cancelled itself")
    return task.result()


async def _contained(what: str, doing: Awaitable[T]) -> T:
    # Were they to leave the task, these two would stop the event loop.
    try:
        return await doing
    except (SystemExit, KeyboardInterrupt) as error:
        raise PluginError(f"{what} raised {describe(error)}") from error


class _Batch(Generic[T]):
    """Calls in one thread, up to the first that overruns."""

    def __init__(self, calls: Sequence[tuple[str, Callable[[], T]]]) -> None:
        self._calls = calls
        self._outcomes: list[Outcome[T]] = []
        self._begun = time.monotonic()
        self._given_up = False
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        name = calls[0][0]
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def finish(self, budget: float) -> list[Outcome[T]]:
        """Wait for the calls; the last outcome may be that of one given up."""
        slow = -1
        while not self._done.done():
            await asyncio.wait({self._done}, timeout=min(SLOW, budget) / 4)
            with self._lock:
                here, taken = len(self._outcomes), time.monotonic() - self._begun
                self._given_up = here < len(self._calls) and taken > budget
            if self._given_up:
                reason = f"{self._calls[here][0]} took longer than {budget:g} s"
                return [*self._outcomes, Outcome(reason=reason)]
            if slow < here < len(self._calls) and taken > SLOW:
                slow = here
                _log.warning("%s has been running for %g s", self._calls[here][0], SLOW)
        return self._outcomes

    def _run(self) -> None:
        for _, call in self._calls:
            try:
                outcome = Outcome(call())
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                outcome = Outcome(reason=describe(error))
            with self._lock:
                if self._given_up:
                    return
                self._outcomes.append(outcome)
                self._begun = time.monotonic()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._done.set_result, None)


def describe(error: BaseException) -> str:
    """Say what was raised, as one line."""
    if isinstance(error, AgentHostError):
        return error.message
    text = " ".join(_text_of(error).split())[:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a plugin's __str__ may raise anything
        return "(its text cannot be read)"
