"""The port WORKERS on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from agenthost import Json

from .limits import Limits
from .processes import Processes
from .threads import Threads

P = ParamSpec("P")
T = TypeVar("T")


class LocalWorkers:
    """Threads and processes beside the daemon's own.

    Args:
        limits: How many, how long, how large.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._threads = Threads(limits or Limits())
        self._processes = Processes(limits or Limits())

    async def in_thread(
        self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Call a function that blocks, in a thread of its own."""
        return await self._threads.run(partial(function, *arguments, **options))

    async def in_process(self, function: str, document: bytes, **options: Json) -> str:
        """Have a document read in another process, and kill that when it is late."""
        return await self._processes.run(function, document, options)

    async def close(self) -> None:
        """Kill the processes, and wait a little for threads."""
        await asyncio.gather(self._processes.close(), self._threads.close())
