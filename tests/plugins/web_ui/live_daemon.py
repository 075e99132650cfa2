"""A daemon in a thread of its own, with a scripted model and plugins of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agenthost.testing.daemons import RunningDaemon, running_daemon

T = TypeVar("T")
PATIENCE = 120.0


@dataclass(frozen=True)
class LiveDaemon:
    """A running daemon, and the loop that it runs on."""

    running: RunningDaemon
    loop: asyncio.AbstractEventLoop

    @property
    def base_url(self) -> str:
        return self.running.url

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the daemon's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)


@contextmanager
def live(
    home: Path, plugins: Sequence[object], config: str = ""
) -> Iterator[LiveDaemon]:
    """Run a daemon until the block ends; what goes wrong there is raised here."""
    ready, over = threading.Event(), asyncio.Event()
    started: list[LiveDaemon] = []
    failures: list[BaseException] = []

    async def serve() -> None:
        running = running_daemon(
            home, config=config, environ={}, plugins=plugins, clock=None
        )
        async with running as daemon:
            started.append(LiveDaemon(daemon, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        if started:
            yield started[0]
    finally:
        if started:
            started[0].loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE)
        for failure in failures:
            raise failure
