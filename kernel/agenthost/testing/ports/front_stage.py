"""What the contract of FRONT has served: a plugin's routes that do a bit of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from types import ModuleType

import httpx
from pydantic import BaseModel

from ...context import PrincipalKind
from ...errors import Conflict
from ...plugins.guards import ALLOW, Deny, SecuritySystem, Verdict
from ...plugins.marks import hookimpl
from ...plugins.points import Guard, RequestCase
from ...routes import Answer, Call, EventStream, Reply, RouteGroup, Socket
from ..daemons import Daemons, RunningDaemon

AT = "/contract"
KEY = "contract-key-0123456789"
CANARY = "sk-canary in /etc/passwd"
LIMIT = 2 << 20
PINGS = (9, 10)
MINIMAL = '[plugins]\nset = "minimal"\n[backends]\nfront = "{}"\n'


class Number(BaseModel):
    """A body."""

    number: int


class Played:
    """The routes, and what became of their calls."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.release = asyncio.Event()
        self.callers: list[str] = []
        self.group = RouteGroup("contract")
        self._add_plain()
        self._add_bodies()
        self._add_lasting()

    def _add_plain(self) -> None:
        group = self.group

        @group.get(f"{AT}/hello", scope="contract:read")
        async def hello(call: Call) -> Answer:
            """Greet."""
            self.callers.append(call.principal.kind)
            return {"hello": call.principal.kind, "query": dict(call.query)}

        @group.get(f"{AT}/open", scope="contract:read", public=True)
        async def anybody(_call: Call) -> Answer:
            """Greet anybody."""
            return {"hello": PrincipalKind.ANONYMOUS}

        @group.get(f"{AT}/things/<thing>", scope="contract:read")
        async def thing(_call: Call, thing: int) -> Answer:
            """Show a thing."""
            return {"thing": thing}

        @group.get(f"{AT}/fails/<kind>", scope="contract:read")
        async def fails(_call: Call, kind: str) -> Answer:
            """Fail."""
            if kind == "ours":
                raise Conflict("it is there already")
            raise RuntimeError(CANARY)

        @group.delete(f"{AT}/hello", scope="contract:write")
        async def silent(_call: Call) -> Answer:
            """Answer without a body."""
            return Reply(None, status=204)

    def _add_bodies(self) -> None:
        group = self.group

        @group.post(f"{AT}/twice", scope="contract:write", body=Number, status=201)
        async def twice(_call: Call, body: Number) -> Answer:
            """Double a number."""
            return {"twice": 2 * body.number}

        @group.post(f"{AT}/plain", scope="contract:write", body=bytes)
        async def plain(_call: Call, body: bytes) -> Answer:
            """Measure a body."""
            return {"size": len(body)}

        @group.post(f"{AT}/large", scope="contract:write", body=bytes, body_limit=LIMIT)
        async def large(_call: Call, body: bytes) -> Answer:
            """Measure a large body."""
            return {"size": len(body)}

    def _add_lasting(self) -> None:
        group = self.group

        @group.get(f"{AT}/waits", scope="contract:read")
        async def waits(_call: Call) -> Answer:
            """Wait."""
            self.begun.set()
            try:
                await self.release.wait()
            finally:
                self.ended.set()
            return {"waited": True}

        @group.get(f"{AT}/streams", scope="contract:read")
        async def streams(_call: Call) -> Answer:
            """Say something, and then nothing."""
            return EventStream(self._frames())

        @group.socket(f"{AT}/socket", scope="contract:read")
        async def socket(socket: Socket) -> None:
            """Say back what is said."""
            await socket.accept()
            while (text := await socket.receive()) is not None:
                await socket.send(text.upper())
            self.ended.set()

    async def _frames(self) -> AsyncIterator[bytes]:
        self.begun.set()
        try:
            yield b"data: first\n\n"
            await self.release.wait()
            yield b"data: last\n\n"
        finally:
            self.ended.set()


class Stage:
    """Starts daemons whose front is the one that is tested.

    Args:
        daemons: Starts them, and ends them with the test.
        front: The front's name, as ``[backends]`` chooses it.
        plugins: The modules that offer it, besides the installed ones.
    """

    def __init__(
        self, daemons: Daemons, front: str, plugins: Sequence[object] = ()
    ) -> None:
        self.played = Played()
        self._daemons = daemons
        self._front = front
        self._plugins = plugins

    async def start(
        self, *more: object, config: str = "", port: int = 0
    ) -> RunningDaemon:
        """Start a daemon that serves the routes, with more plugins and configuration.

        Args:
            more: Modules besides.
            config: What stands above the first table of its ``config.toml``.
            port: Where it listens; 0 takes a free one.
        """
        return await self._daemons.start(
            config=config + MINIMAL.format(self._front),
            environ={"AGENTHOST_LISTEN_ADDR": f"127.0.0.1:{port}"},
            plugins=[offering("contract", self.played.group), *self._plugins, *more],
        )


def offering(name: str, *groups: RouteGroup) -> ModuleType:
    """A plugin that offers routes."""
    plugin = ModuleType(name)

    def register_routes() -> Sequence[RouteGroup]:
        return groups

    plugin.register_routes = hookimpl(register_routes)  # type: ignore[attr-defined]  # reason: it is made here
    return plugin


def refusing(path: str) -> ModuleType:
    """A plugin that refuses requests of a path."""
    plugin = ModuleType("refusing")

    def guard(case: RequestCase) -> Verdict:
        return Deny("refused by a test") if case.path == path else ALLOW

    def security_system() -> SecuritySystem:
        return SecuritySystem("refusing", {Guard.REQUEST: guard}, lambda: None)

    plugin.security_system = hookimpl(security_system)  # type: ignore[attr-defined]  # reason: it is made here
    return plugin


def told(answer: httpx.Response, status: int) -> str:
    """Demand an error of this status, as every error is told, and give its text."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].partition(";")[0] == "application/json"
    error = answer.json()["error"]
    assert isinstance(error, str)
    assert error
    return error


@asynccontextmanager
async def connection(
    running: RunningDaemon,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to the daemon, for the length of a block."""
    host, _, port = running.daemon.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def say(running: RunningDaemon, said: bytes) -> bytes:
    """Send bytes as they are and return all that comes until the end."""
    async with connection(running) as (reader, writer):
        writer.write(said)
        return await reader.read()


class RawSocket:
    """A WebSocket as bytes, for small texts alone."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, text: str) -> None:
        """Send a text."""
        data = text.encode()
        self._writer.write(bytes([0x81, 0x80 | len(data)]) + bytes(4) + data)
        await self._writer.drain()

    async def hear(self) -> tuple[int, bytes]:
        """Give the next message: its kind (1 text, 8 close) and what is in it."""
        while True:
            kind, length = await self._reader.readexactly(2)
            data = await self._reader.readexactly(length)
            if kind & 0x0F not in PINGS:
                return kind & 0x0F, data


@asynccontextmanager
async def raw_socket(
    running: RunningDaemon, query: str = "", status: int = 101
) -> AsyncIterator[RawSocket]:
    """Open the socket of the routes; at the end it goes without a word.

    Args:
        running: The daemon.
        query: What is asked with it, such as ``?ticket=...``.
        status: What the answer must be.
    """
    async with connection(running) as (reader, writer):
        writer.write(UPGRADE.format(query).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status} ".encode()), head
        yield RawSocket(reader, writer)


UPGRADE = (
    f"GET {AT}/socket{{}} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
