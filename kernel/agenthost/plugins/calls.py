"""Call a plugin's code, and go on without it when it blocks or never ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import AgentHostError, PluginError, Unavailable

_log = logging.getLogger(__name__)
T = TypeVar("T")

SLOW = 1.0


@dataclass(frozen=True, slots=True)
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
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in calls]
    # Threads share it, so that what ends long after it was given up repeats nothing.
    left = iter([(call, end) for (_, call), end in zip(calls, ends, strict=True)])

    def work() -> None:
        for call, end in left:
            try:
                outcome: tuple[T | None, str | None] = call(), None
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                outcome = None, describe(error)
            if end.cancelled() or loop.is_closed():
                return
            loop.call_soon_threadsafe(_tell, end, outcome)

    for number, (name, _) in enumerate(calls):
        if number == 0 or ends[number - 1].cancelled():
            # A thread of its own, and no pool's: one that never comes back is left
            # behind, and the end of the process does not wait for it.
            threading.Thread(target=work, name=name, daemon=True).start()
        await _wait(name, ends[number], budget)
    return [
        (None, f"{name} took longer than {budget:g} s")
        if end.cancelled()
        else end.result()
        for (name, _), end in zip(calls, ends, strict=True)
    ]


async def _wait(name: str, end: asyncio.Future[Any], budget: float) -> None:
    await asyncio.wait({end}, timeout=min(SLOW, budget))
    if not end.done() and budget > SLOW:
        _log.warning("%s has been running for %g s", name, SLOW)
        await asyncio.wait({end}, timeout=budget - SLOW)
    end.cancel()


def _tell(end: asyncio.Future[T], outcome: T) -> None:
    if not end.done():
        end.set_result(outcome)


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
