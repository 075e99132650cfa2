"""The processes of this machine, as the kernel lists them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0


def children(parent: int | None = None) -> set[int]:
    """The processes that a process has started and that have not ended."""
    wanted = parent or os.getpid()
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == wanted and fields[0] != "Z":
            found.add(int(status.parent.name))
    return found


def runs(pid: int) -> bool:
    """Whether the process has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def tool_threads() -> list[str]:
    """The threads in which tools work."""
    return [t.name for t in threading.enumerate() if t.name == "agenthost tool"]


async def until(true: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(patience):
        while not true():  # noqa: ASYNC110 - processes set no event
            await asyncio.sleep(0.01)
