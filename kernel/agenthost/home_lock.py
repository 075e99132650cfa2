"""One daemon per home: a lock that the operating system releases on death."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import Conflict


class HomeLock:
    """The held lock of a home; dropped by ``release`` or with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let another daemon have the home; calling twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def lock_home(home: Path) -> HomeLock:
    """Take the home for this process, or refuse at once.

    Args:
        home: An existing folder; ``daemon.lock`` is made in it. Its text, the process
            id, is for people: the lock is the open file, not its content.

    Raises:
        Conflict: Another process holds it.
        OSError: The home cannot be written.
    """
    descriptor = os.open(home / "daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise Conflict(
            f"another agenthost runs on this home (process {owner}); "
            "stop it, or start this one with another home"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return HomeLock(descriptor)
