"""Emptying the write-ahead log, in which deleted values can still be read."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from .connect import BUSY_TIMEOUT
from .driver import driver

if TYPE_CHECKING:
    from sqlalchemy import Connection

LATEST = 60.0
"""Seconds after a write within which the log is emptied."""
AGAIN = 1.0
"""Seconds after which a log that a reader needed is tried again."""


class Truncation:
    """When the log is to be emptied: some time after the first write since the last.

    A database that is opened may have a log which a crash has left.
    """

    def __init__(self) -> None:
        self._due: float | None = monotonic() + LATEST

    @property
    def patience(self) -> float | None:
        """How many seconds may pass before it is due; None is for ever."""
        return None if self._due is None else max(self._due - monotonic(), 0.0)

    def written(self) -> None:
        """Note that something was written."""
        if self._due is None:
            self._due = monotonic() + LATEST

    def run(self, connection: Connection) -> None:
        """Empty the log if that is due and no reader needs it."""
        if self.patience == 0.0:
            self._due = monotonic() + AGAIN
            if truncate(connection):
                self._due = None

    def postpone(self) -> None:
        """What fails has its next turn much later than what a reader holds up."""
        self._due = monotonic() + LATEST


def truncate(connection: Connection) -> bool:
    """Move the log into the database and cut it; False while a reader needs it."""
    raw = driver(connection)
    # Waiting for a long read would make every write wait for it.
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        busy, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        raw.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT * 1_000)}")
    return not busy
