"""One daemon per home: a lock that the operating system releases on death."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO

from .errors import Conflict


def lock_home(home: Path) -> TextIO:
    """Take the home for this process, or refuse at once.

    Args:
        home: An existing folder; ``daemon.lock`` is made in it. Its text, the process
            id, is for people: the lock is the open file, not its content.

    Returns:
        What holds it: closed, or at the end of the process, it lets the home go.

    Raises:
        Conflict: Another process holds it.
        OSError: The home cannot be written.
    """
    descriptor = os.open(home / "daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    lock = os.fdopen(descriptor, "r+", encoding="ascii", errors="replace")
    try:
        # The system lets go of it when the process ends, however it ends: a file that
        # says who runs would outlive a kill.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with lock:
            owner = lock.read(32).strip() or "unknown"
        raise Conflict(
            f"another agenthost runs on this home (process {owner}); "
            "stop it, or start this one with another home"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock
