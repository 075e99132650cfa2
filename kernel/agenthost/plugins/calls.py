"""Call a plugin's code, and go on without it when it blocks or never ends."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from agenthost_values.value_class import value_class

from ..errors import AgentHostError, PluginError, Unavailable

_log = logging.getLogger(__name__)
T = TypeVar("T")

SLOW = 1.0
SHORT = 0.001


@value_class
class Implementation:
    """A plugin's function for a hook; ``takes`` are those of the ``given`` it wants."""

    function: Callable[..., Any]
    given: tuple[str, ...]
    takes: tuple[str, ...]

    def __call__(self, *arguments: object) -> Any:
        """Call it with all that the hook is given, in the hook's order."""
        by_name = dict(zip(self.given, arguments, strict=True))
        return self.function(*(by_name[name] for name in self.takes))


async def guarded_each(
    calls: Sequence[tuple[str, Callable[[], T]]], budget: float
) -> list[tuple[T | None, str | None]]:
    """Run calls one after another in a thread, each for at most ``budget`` seconds.

    A call that overruns is left behind with its thread, since Python cannot end it,
    and the rest runs in another.

    Args:
        calls: What is called, by its name for the log and the reason; functions of
            plugins may raise anything.
        budget: Seconds after which a call is given up.

    Returns:
        What each gave, or None and the reason why it gave nothing.
    """
    outcomes: list[tuple[T | None, str | None]] = []
    while len(outcomes) < len(calls):
        run = _Run(calls[len(outcomes) :])
        overrun = await run.ended(budget)
        outcomes += run.outcomes
        if overrun:
            name = calls[len(outcomes)][0]
            outcomes.append((None, f"{name} took longer than {budget:g} s"))
    return outcomes


class _Run(Generic[T]):
    """A thread that makes calls one after another, until it is left behind.

    It wakes the event loop when all are made and not at each: the two would take the
    interpreter from one another a few hundred times at every start.
    """

    def __init__(self, calls: Sequence[tuple[str, Callable[[], T]]]) -> None:
        self.outcomes: list[tuple[T | None, str | None]] = []
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.create_future()
        # For what both threads know: how many calls are made, since when one has been
        # running, and whether anybody waits for it.
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._left = False

    async def ended(self, budget: float) -> bool:
        """Wait until all calls are made, or one overruns; tell whether one did."""
        # A thread of its own, and no pool's: one that never comes back is left
        # behind, and the end of the process does not wait for it.
        threading.Thread(target=self._work, name=self._calls[0][0], daemon=True).start()
        told = -1
        try:
            while not self._end.done():
                with self._lock:
                    made, spent = len(self.outcomes), time.monotonic() - self._began
                    self._left = made < len(self._calls) and spent >= budget
                if self._left:
                    return True
                if spent >= SLOW and made not in (told, len(self._calls)):
                    _log.warning(
                        "%s has been running for %g s", self._calls[made][0], SLOW
                    )
                    told = made
                limit = budget if made == told else min(SLOW, budget)
                await asyncio.wait({self._end}, timeout=max(limit - spent, SHORT))
        finally:
            self._left = True
        return False

    def _work(self) -> None:
        for _, call in self._calls:
            try:
                outcome: tuple[T | None, str | None] = call(), None
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                outcome = None, describe(error)
            with self._lock:
                # What ends after it was given up is nobody's, and repeats nothing.
                if self._left:
                    return
                self.outcomes.append(outcome)
                self._began = time.monotonic()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_tell, self._end)


def _tell(end: asyncio.Future[None]) -> None:
    if not end.done():
        end.set_result(None)


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
