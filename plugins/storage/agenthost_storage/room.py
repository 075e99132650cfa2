"""How much an agent's workspace may hold, and how much it holds.

What is there is counted at the first write, carried on from then, and counted anew
before a write is refused: whatever else writes there is seen at the latest then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from agenthost import StorageFull

BLOCK = 4096
"""A file takes at least so much: without it, empty ones would be free."""


def _taken(size: int) -> int:
    """What a file of so many bytes takes on a disk, as far as a limit goes."""
    return max(BLOCK, -(-size // BLOCK) * BLOCK)


class _Held:
    """What one workspace holds; None until it was counted."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.bytes: int | None = None


class Room:
    """What the workspaces of all agents hold; for any thread.

    Attributes:
        most: Bytes that one may hold.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        # One entry for each agent that wrote; its removal takes it away.
        self._held: dict[Path, _Held] = {}

    @contextmanager
    def taken_by(self, folder: Path, new: int, old: int | None) -> Iterator[None]:
        """Have the block write a file of ``new`` bytes in place of one of ``old``.

        Raises:
            StorageFull: The workspace would hold more than it may.
        """
        change = _taken(new) - (0 if old is None else _taken(old))
        held = self._held.setdefault(folder, _Held())
        # Of this workspace alone, and until the file is there: who counts meanwhile
        # would count half of it.
        with held.lock:
            if held.bytes is None or held.bytes + change > self.most:
                held.bytes = measured(folder)
            if change > 0 and held.bytes + change > self.most:
                raise StorageFull(
                    f"the workspace holds {held.bytes} of the {self.most} bytes that "
                    "it may; delete files, or raise files.workspace_bytes"
                )
            yield
            held.bytes += change

    def forget(self, folder: Path) -> None:
        """The workspace is gone."""
        self._held.pop(folder, None)


def measured(folder: Path) -> int:
    """Count what a folder holds, links as such; what vanishes meanwhile is nothing."""
    held, open_folders = 0, [os.fspath(folder)]
    while open_folders:
        try:
            entries = os.scandir(open_folders.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        open_folders.append(entry.path)
                    held += _taken(entry.stat(follow_symlinks=False).st_size)
    return held
