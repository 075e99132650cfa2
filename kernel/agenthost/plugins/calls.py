"""Call a plugin's code, and go on without it when it blocks or never ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from ..errors import AgentHostError, PluginError, Unavailable

_log = logging.getLogger(__name__)
T = TypeVar("T")

SLOW = 1.0


async def guarded(name: str, call: Callable[[], T], budget: float) -> T:
    """Run a call in a thread of its own, for at most ``budget`` seconds.

    One that overruns is left behind with its thread, since Python cannot end it.

    Args:
        name: What it is called in the log and in the reason.
        call: Code of a plugin; it may raise anything.
        budget: Seconds after which it is given up.

    Raises:
        PluginError: It raised, which the message says as one line, or was given up.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, str | None]] = loop.create_future()

    def run() -> None:
        value, reason = None, None
        try:
            value = call()
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            reason = describe(error)
        # What ends long after it was given up may find no loop.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set_result, (value, reason))

    threading.Thread(target=run, name=name, daemon=True).start()
    await asyncio.wait({done}, timeout=min(SLOW, budget))
    if not done.done() and budget > SLOW:
        _log.warning("%s has been running for %g s", name, SLOW)
        await asyncio.wait({done}, timeout=budget - SLOW)
    if not done.done():
        raise PluginError(f"{name} took longer than {budget:g} s")
    value, reason = done.result()
    if reason is not None:
        raise PluginError(reason)
    return cast("T", value)


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
