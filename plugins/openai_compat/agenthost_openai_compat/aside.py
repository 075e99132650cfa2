"""Large requests are read in a thread: megabytes of pictures hold up nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agenthost import Call

T = TypeVar("T")

LARGE = 512 * 1024
"""Bytes of a request from which on a thread is worth its while."""


async def read_aside(call: Call, read: Callable[[], T]) -> T:
    """Read a request here if it is small, else in one of the few threads there are.

    Raises:
        Unavailable: Every thread is busy, and stayed so.
    """
    length = call.headers.get("content-length", "")
    if length.isdigit() and int(length) < LARGE:
        return read()
    return await call.host.workers.in_thread(read)
