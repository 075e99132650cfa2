"""Call a plugin's code, and go on without it when it blocks or never ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
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
    """Run calls one after another in threads, each for at most ``budget`` seconds.

    A call that overruns is left behind with its thread, since Python cannot end it,
    and the rest goes on.

    Args:
        calls: What is called, by its name for the log and the reason; functions of
            plugins may raise anything.
        budget: Seconds after which a call is given up.
    """
    return [await _guarded(name, call, budget) for name, call in calls]


async def _guarded(name: str, call: Callable[[], T], budget: float) -> Outcome[T]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Outcome[T]] = loop.create_future()

    def run() -> None:
        try:
            outcome = Outcome(call())
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            outcome = Outcome(reason=describe(error))
        # What ends long after it was given up may find no loop.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set_result, outcome)

    threading.Thread(target=run, name=name, daemon=True).start()
    await asyncio.wait({done}, timeout=min(SLOW, budget))
    if not done.done() and budget > SLOW:
        _log.warning("%s has been running for %g s", name, SLOW)
        await asyncio.wait({done}, timeout=budget - SLOW)
    if done.done():
        return done.result()
    return Outcome(reason=f"{name} took longer than {budget:g} s")


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
