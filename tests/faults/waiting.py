"""Wait for what other processes do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE = 10.0


async def soon(
    done: Callable[[], bool], told: str | Callable[[], str], patience: float = PATIENCE
) -> None:
    """Wait until it is so; what never comes is a failure, told by these words."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while not done():
        words = told if isinstance(told, str) else told()
        assert loop.time() < deadline, f"after {patience:g} s: {words}"
        await asyncio.sleep(0.002)
