"""A line to loopback that remembers what an adapter hands on."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from agenthost import Blocked, Clock, Secret, SystemClock, Unavailable

from ..contract import Inbound

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
PATIENCE = 20.0


class FakeLine:
    """What the bridge gives an adapter, for one test; it reaches loopback alone.

    Attributes:
        heard: Every message that was kept, those of all connections.
        batches: How many messages came in each call of ``received``.
        troubles: What the adapter told of.
        failing: Whether ``received`` raises, as for a disk that is full.
    """

    def __init__(
        self,
        settings: Any,
        secrets: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.account = "default"
        self.settings = settings
        self.clock = clock or SystemClock()
        self.heard: list[Inbound] = []
        self.batches: list[int] = []
        self.troubles: list[str] = []
        self.failing = False
        self.connections = 0
        self._secrets = dict(secrets or {})
        self._cursor = ""
        self._client: httpx.AsyncClient | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._changed = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    def secret(self, name: str) -> Secret | None:
        """Give one of the test's secrets."""
        value = self._secrets.get(name)
        return None if value is None else Secret(value)

    def change_secrets(self, secrets: Mapping[str, str]) -> None:
        """Have others from now on."""
        self._secrets = dict(secrets)

    def http(self) -> httpx.AsyncClient:
        """Give a client that follows nothing and trusts no environment."""
        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, timeout=PATIENCE)
        return self._client

    async def connect(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to loopback.

        Raises:
            Blocked: The host is another.
            Unavailable: Nobody listens there.
        """
        if host not in LOOPBACK:
            raise Blocked(f"{host} is not loopback: a test connects nowhere else")
        try:
            reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        except ssl.SSLError as error:
            raise Unavailable(f"{host} has no certificate to trust") from error
        except OSError as error:
            raise Unavailable(f"nobody listens at {host}:{port}") from error
        self._writers.append(writer)
        return reader, writer

    @property
    def cursor(self) -> str:
        """The last cursor that was kept."""
        return self._cursor

    async def received(self, *messages: Inbound, cursor: str | None = None) -> None:
        """Remember messages, those already known passed over, and the cursor.

        Raises:
            Unavailable: The test wants no disk.
        """
        self.batches.append(len(messages))
        self._changed.set()
        await self._open.wait()
        if self.failing:
            raise Unavailable("the disk takes nothing")
        known = {(each.place, each.message_id) for each in self.heard}
        for message in messages:
            if message.edited or (message.place, message.message_id) not in known:
                self.heard.append(message)
        if cursor is not None:
            self._cursor = cursor
        self._changed.set()

    def connected(self) -> None:
        """Count a connection."""
        self.connections += 1
        self._changed.set()

    def troubled(self, reason: str) -> None:
        """Remember the trouble."""
        self.troubles.append(reason)
        self._changed.set()

    def hold(self) -> None:
        """Let ``received`` wait, as for a slow disk."""
        self._open.clear()

    def release(self) -> None:
        """Let those who wait go on."""
        self._open.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened on the line.

        Raises:
            TimeoutError: It has not, in time.
        """
        async with asyncio.timeout(PATIENCE):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    async def hear(self, count: int) -> list[Inbound]:
        """Wait until so many messages were heard, and give them all."""
        await self.until(lambda: len(self.heard) >= count)
        return self.heard

    def left_open(self) -> int:
        """Count the connections that the adapter has not closed."""
        return sum(not writer.is_closing() for writer in self._writers)

    async def aclose(self) -> None:
        """Close the client and what an adapter left open."""
        if self._client is not None:
            await self._client.aclose()
        for writer in self._writers:
            writer.close()
