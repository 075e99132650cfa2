"""Between the bytes of an exchange and the application that serves it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

from .asgi import ASGIApp, Event, Receive, Scope, Send

_ENDS = frozenset({"http.disconnect", "websocket.disconnect"})

_log = logging.getLogger("agenthost.front.server")


class Inbox:
    """What one application has not received yet; it is the ``receive`` of ASGI.

    Who brings more than ``limit`` messages waits, but never the one with the end:
    nobody else would tell an application that its client has gone.

    Attributes:
        ended: Whether the end has come, received or not.
        on_end: Called when it comes.
    """

    def __init__(self, limit: int) -> None:
        self.ended = False
        self.on_end: Callable[[], object] | None = None
        self._limit = limit
        self._messages: deque[Event] = deque()
        # Most requests wait for neither: they are made by who does.
        self._some: asyncio.Event | None = None
        self._room: asyncio.Event | None = None

    @property
    def some(self) -> bool:
        """Whether a message is there that need not be waited for."""
        return bool(self._messages)

    async def put(self, message: Event) -> None:
        """Add a message, and wait while there are too many."""
        self._messages.append(message)
        if self._some is not None:
            self._some.set()
        if message["type"] in _ENDS:
            self.ended = True
            if self.on_end is not None:
                self.on_end()
        elif len(self._messages) > self._limit:
            self._room = self._room or asyncio.Event()
            self._room.clear()
            await self._room.wait()

    async def __call__(self) -> Event:
        """The next message."""
        while not self._messages:
            self._some = self._some or asyncio.Event()
            self._some.clear()
            await self._some.wait()
        if self._room is not None:
            self._room.set()
        return self._messages.popleft()


async def serve(
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Callable[[Event | None], Awaitable[None]],
) -> None:
    """Run an application for one exchange; its fault ends that exchange alone."""
    try:
        await app(scope, receive, cast("Send", send))
    except Exception:  # noqa: BLE001 - a plugin's fault ends its request alone
        _log.exception("unhandled error in the application")
    finally:
        await send(None)
