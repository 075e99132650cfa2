"""What the nodes tell each other: PostgreSQL's NOTIFY, beside all transactions."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
from agenthost import AgentHostError

from .connect import open_reading
from .reader import Reader

CHANNEL = "agenthost"
TELL = f"SELECT pg_notify('{CHANNEL}', :notice)"
AGAIN = 1.0
"""Seconds until a lost connection is tried again."""
LAST_WORDS = 2.0
"""Seconds that what is still to be told may take at the end."""
Heard = Callable[[str], None]

log = logging.getLogger(__name__)


class Notices:
    """Words by topic, told to all other nodes and heard from them.

    A notice is told by a statement of its own: inside a writing transaction it would
    make all commits of the server stand behind one another.
    """

    def __init__(self, options: dict[str, Any], reader: Reader) -> None:
        self._options = options
        self._reader = reader
        self._me = uuid4().hex
        self._heard: defaultdict[str, list[Heard]] = defaultdict(list)
        self._listening: asyncio.Task[None] | None = None
        self._waiting: dict[str, None] = {}
        self._telling: asyncio.Task[None] | None = None

    def tell(self, topic: str, word: str = "") -> None:
        """Tell every other node, one after another; no word waits twice at once."""
        self._waiting[f"{topic} {word}"] = None
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell(), name="tell nodes")

    def listen(self, topic: str, heard: Heard) -> None:
        """Have a function called with each word of a topic that another node tells."""
        self._heard[topic].append(heard)
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(), name="hear nodes")

    async def stop(self) -> None:
        """Tell what is to be told, and hear no more."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        if self._telling is not None:
            await asyncio.wait([self._telling], timeout=LAST_WORDS)
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _tell(self) -> None:
        while self._waiting:
            said = next(iter(self._waiting))
            # What is told from here on may be news to who has heard this one.
            del self._waiting[said]
            try:
                await self._reader.all(TELL, {"notice": f"{self._me} {said}"})
            except AgentHostError as error:
                log.info("other nodes were not told: %s", error.message)

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except (psycopg.Error, OSError) as error:
                log.info("other nodes are not heard: %s", type(error).__name__)
            await asyncio.sleep(AGAIN)

    async def _hear(self) -> None:
        connection = await open_reading(self._options)
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
            for heard in [each for every in self._heard.values() for each in every]:
                heard("")
            async for notice in connection.notifies():
                self._hand_on(notice.payload)
        finally:
            await connection.close()

    def _hand_on(self, notice: str) -> None:
        sender, _, said = notice.partition(" ")
        topic, _, word = said.partition(" ")
        if sender != self._me:
            for heard in self._heard.get(topic, ()):
                heard(word)
