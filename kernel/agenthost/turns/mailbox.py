"""One mailbox a session: its turns and compactions run one after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..errors import RateLimited

WAITING_PER_SESSION = 64


class Mailboxes:
    """The mailboxes in use; one that nobody holds or waits for is forgotten."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, session_id: str) -> AsyncIterator[None]:
        """Wait for the session in order of arrival and keep it.

        Raises:
            RateLimited: Too many already wait for this session.
        """
        lock, users = self._locks.get(session_id) or (asyncio.Lock(), 0)
        if users >= WAITING_PER_SESSION:
            raise RateLimited(
                f"{users} turns already wait for this session; wait for one to end"
            )
        self._locks[session_id] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(session_id)
            if users > 1:
                self._locks[session_id] = (lock, users - 1)
