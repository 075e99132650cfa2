"""The newest lines of the log, kept for whoever reads along over the API."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from threading import Lock
from typing import TYPE_CHECKING

from .logs import JsonFormatter

if TYPE_CHECKING:
    from agenthost import Host

KEPT = 1_000
LONGEST = 4_096
"""Characters of a line: with those that are kept, 4 MiB at most."""


class LogRing(logging.Handler):
    """Keeps the newest lines, blotted as those of the log are; for any thread.

    It belongs to one daemon. Two in one process write one log: each keeps it all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self._lines: deque[tuple[int, int, str]] = deque(maxlen=KEPT)
        self._count = 0
        self._adding = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: set[asyncio.Event] = set()

    async def start(self, _: Host) -> None:
        """Keep what is logged from now on."""
        self._loop = asyncio.get_running_loop()
        logging.getLogger("agenthost").addHandler(self)

    async def stop(self, _: Host) -> None:
        """Keep no more; who reads comes to the end."""
        logging.getLogger("agenthost").removeHandler(self)
        self._loop = None
        self._wake()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        text = self._written(record)
        with self._adding:
            self._count += 1
            self._lines.append((self._count, record.levelno, text))
        loop = self._loop
        if self._readers and loop is not None:
            loop.call_soon_threadsafe(self._wake)

    def _written(self, record: logging.LogRecord) -> str:
        text = self.format(record)
        if len(text) <= LONGEST:
            return text
        # Cut JSON is none: the message is cut, and its traceback is in the log alone.
        said = f"{record.getMessage()[: LONGEST // 8]}... (cut; the log has it all)"
        facts = {**record.__dict__, "msg": said, "args": (), "exc_info": None}
        return self.format(logging.makeLogRecord(facts))

    def _wake(self) -> None:
        for reader in self._readers:
            reader.set()

    def _since(self, number: int, level: int) -> tuple[int, list[tuple[int, str]]]:
        """Give the number of the newest line, and the lines behind another."""
        with self._adding:
            kept = list(self._lines)
        # A number from before a restart is none of ours: all is told then.
        number = number if number <= self._count else 0
        told = [(n, text) for n, kind, text in kept if n > number and kind >= level]
        return (kept[-1][0] if kept else 0), told

    async def lines(
        self, after: int, level: int, *, follow: bool
    ) -> AsyncGenerator[tuple[int, str], None]:
        """Give the lines behind a number, and those that come while somebody reads."""
        news = asyncio.Event()
        self._readers.add(news)
        try:
            while True:
                news.clear()
                after, found = self._since(after, level)
                for line in found:
                    yield line
                if not follow or self._loop is None:
                    return
                await news.wait()
        finally:
            self._readers.discard(news)
