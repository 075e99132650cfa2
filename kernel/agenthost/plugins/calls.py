"""Call a plugin's code off the event loop, and go on without it when it blocks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import AgentHostError

_log = logging.getLogger(__name__)
T = TypeVar("T")

SLOW = 1.0


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What came of a call: a value, or the reason why there is none."""

    value: T | None = None
    reason: str | None = None


async def guarded(name: str, call: Callable[[], T], budget: float) -> Outcome[T]:
    """Run the call in a thread of its own for at most ``budget`` seconds.

    A thread that overruns is left behind: Python cannot end it.

    Args:
        name: What is called, for the log and the reason.
        call: A function of a plugin; it may raise anything.
        budget: Seconds after which the caller goes on without it.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Outcome[T]] = loop.create_future()

    def run() -> None:
        outcome = _attempt(call, done)
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, done, outcome)

    threading.Thread(target=run, name=name, daemon=True).start()
    finished, _ = await asyncio.wait({done}, timeout=min(SLOW, budget))
    if not finished and budget > SLOW:
        _log.warning("%s has been running for %g s", name, SLOW)
        finished, _ = await asyncio.wait({done}, timeout=budget - SLOW)
    if finished:
        return done.result()
    return Outcome(reason=f"{name} took longer than {budget:g} s")


def _attempt(call: Callable[[], T], done: asyncio.Future[Outcome[T]]) -> Outcome[T]:
    try:
        return Outcome(call())
    except KeyboardInterrupt as interrupt:
        done.get_loop().call_soon_threadsafe(_interrupt, done, interrupt)
        return Outcome(reason="interrupted")
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        return Outcome(reason=describe(error))


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


def _settle(done: asyncio.Future[Outcome[T]], outcome: Outcome[T]) -> None:
    if not done.done():
        done.set_result(outcome)


def _interrupt(done: asyncio.Future[Outcome[T]], error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)
