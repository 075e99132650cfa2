"""Whether the file that is open is still the one at its path."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from agenthost import Unavailable


class Presence:
    """Watches for a database that was deleted, moved or replaced while it is open.

    SQLite goes on writing to a file that has no name any more, and says that all is
    well: what it writes is gone when the process ends.

    Args:
        path: The file as it is now is the one that is meant.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._meant = self._found()
        self._seen: float | None = None

    def holds(self) -> bool:
        """Look whether the file is there; a call of the operating system."""
        return self._meant is not None and self._found() == self._meant

    def require(self, patience: float = 0.0) -> None:
        """Refuse to go on without the file.

        Args:
            patience: Seconds for which an earlier look is good enough.

        Raises:
            Unavailable: It is gone, or another one is in its place.
        """
        now = monotonic()
        if self._seen is not None and now - self._seen < patience:
            return
        if not self.holds():
            self._seen = None
            raise Unavailable(
                "the database was deleted, moved or replaced while it was open; stop "
                "agenthost, put its data folder back and start again"
            )
        self._seen = now

    def _found(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino
