"""Waiting for something that may come before its time is over."""

from __future__ import annotations

import asyncio

from agenthost import Clock


async def until(woken: asyncio.Future[None], clock: Clock, seconds: float) -> None:
    """Wait for a future, but no longer than so many seconds."""
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((woken, timer), return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
