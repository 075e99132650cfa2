"""Time, handed in: wall clock for rows, monotonic clock for intervals."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, tzinfo
from typing import Protocol


class Clock(Protocol):
    """What tells the time and waits."""

    def time(self) -> float:
        """Seconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never jumps."""
        ...

    def now(self, zone: tzinfo = UTC) -> datetime:
        """The present moment in a zone."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait on the monotonic clock."""
        ...


class SystemClock:
    """The machine's clocks."""

    def time(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds of a clock that never jumps."""
        return time.monotonic()

    def now(self, zone: tzinfo = UTC) -> datetime:
        """The present moment in a zone."""
        return datetime.now(zone)

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop's clock."""
        await asyncio.sleep(seconds)


def timestamp(moment: float) -> str:
    """Write epoch seconds as ISO 8601 UTC with milliseconds and ``Z``."""
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"
