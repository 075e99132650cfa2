"""aiohttp's connections, spared what they do for nothing."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler


class Connector(aiohttp.TCPConnector):
    """Makes connections of :class:`Connection`.

    Should a later aiohttp make them another way, they are its own, and only slower.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        loop = asyncio.get_running_loop()
        handler: type[ResponseHandler] = Connection
        self._factory = partial(handler, loop=loop)


class Connection(ResponseHandler):
    """Goes on reading only where it had stopped.

    aiohttp asks for that after every piece of a body, and a streamed answer has a
    piece a word; ``make bench`` shows it on a message.
    """

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's
        """Go on after a pause."""
        try:
            if not (self._reading_paused or self._buffer_paused):
                return
        except AttributeError:
            # A later aiohttp may call them otherwise.
            pass
        super().resume_reading(resume_parser)
