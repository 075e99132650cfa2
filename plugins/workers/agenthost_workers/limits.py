"""How much work may run here, for how long, and in how much memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agenthost import Unavailable
from agenthost_values.value_class import value_class

STOPPING = "the daemon is stopping"


@value_class
class Limits:
    """What everything here keeps to.

    Args:
        threads: Calls that may block at once.
        processes: Documents that may be read at once.
        patience: Seconds that work waits for a thread or process to be free.
        start: Seconds for a process to start and import what reads.
        seconds: Seconds from the hand-over of a document to its text.
        memory: Bytes of a process, everything in it counted.
        idle: Seconds after which a process without work ends.
        farewell: Seconds that the daemon's stop waits for what still runs.
    """

    threads: int = 16
    processes: int = 2
    patience: float = 10.0
    start: float = 10.0
    seconds: float = 2.0
    memory: int = 256 * 1024 * 1024
    idle: float = 60.0
    farewell: float = 1.0


async def enter(room: asyncio.Semaphore, patience: float, what: str) -> None:
    """Take a place, which the caller gives back.

    Raises:
        Unavailable: None became free in time.
    """
    try:
        async with asyncio.timeout(patience):
            await room.acquire()
    except TimeoutError:
        raise Unavailable(f"all {what} of tools are busy; try again later") from None


@asynccontextmanager
async def place(
    room: asyncio.Semaphore, patience: float, what: str
) -> AsyncIterator[None]:
    """Hold a place; raises as :func:`enter`."""
    await enter(room, patience, what)
    try:
        yield
    finally:
        room.release()
