"""Connections: how many, for how long, and what is left of them."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import resource
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
from agenthost_front.connections import Connections
from agenthost_front.listening import raise_descriptor_limit

from .conftest import Running, Start, until
from .raw import ECHO, say, upgrade

GET = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
WAIT = b"GET /v1/wait HTTP/1.1\r\nHost: localhost\r\n\r\n"
WHOLE = b"GET /v1/stream/three HTTP/1.1\r\nHost: localhost\r\n\r\n"
STREAM = b"GET /v1/stream/endless HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSE = b"\x88\x82\0\0\0\0\x03\xe8"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Enter:
    """Opens connections, and aborts what is left of them when the test ends."""

    def __init__(self) -> None:
        self._writers: list[asyncio.StreamWriter] = []

    async def __call__(self, front: Running, sent: bytes = b"") -> Streams:
        """Open a connection and send something."""
        reader, writer = await asyncio.open_connection(front.host, front.port)
        self._writers.append(writer)
        writer.write(sent)
        return reader, writer

    async def leave(self) -> None:
        """Abort them all."""
        for writer in self._writers:
            writer.transport.abort()
        ends = (writer.wait_closed() for writer in self._writers)
        await asyncio.gather(*ends, return_exceptions=True)
        self._writers.clear()


@pytest.fixture
async def enter() -> AsyncIterator[Enter]:
    """Opens connections."""
    one = Enter()
    yield one
    await one.leave()


async def is_served(streams: Streams) -> bool:
    """Tell whether a connection answers; not when it was closed."""
    reader, writer = streams
    writer.write(GET)
    async with asyncio.timeout(30):
        try:
            return (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
        except (ConnectionError, asyncio.IncompleteReadError):
            return False


def reset(writer: asyncio.StreamWriter) -> None:
    """Leave with a reset."""
    at_once = struct.pack("ii", 1, 0)
    peer = writer.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    writer.transport.abort()


def descriptors() -> int:
    """What this process has open, both ends of every connection."""
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("sent", [b"", GET, GET[:20], upgrade(), STREAM, WAIT])
async def test_a_connection_that_its_client_closed_is_closed_at_once(
    enter: Enter, open_front: Running, sent: bytes
) -> None:
    before = descriptors()
    streams = [await enter(open_front, sent) for _ in range(5)]
    for reader, writer in streams:
        if sent and sent not in {WAIT, GET[:20]}:
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    await until(lambda: descriptors() == before)


async def test_a_client_that_only_stops_sending_is_still_answered(
    enter: Enter,
    open_front: Running,
) -> None:
    reader, writer = await enter(open_front, GET)
    writer.write_eof()
    async with asyncio.timeout(30):
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_client_that_leaves_pipelined_requests_leaves_no_task(
    enter: Enter,
    open_front: Running,
) -> None:
    before = asyncio.all_tasks()
    _, writer = await enter(open_front, WAIT + GET + GET)
    await until(lambda: open_front.seen.opened == 1)
    reset(writer)
    await until(lambda: open_front.seen.cancelled == 1)
    await until(lambda: asyncio.all_tasks() <= before)


@pytest.mark.parametrize("sent", [b"", GET[:30], GET])
async def test_a_connection_that_asks_for_nothing_is_closed(
    start: Start, sent: bytes
) -> None:
    front = await start(connection_idle=0.05)
    assert (await say(front, sent)).startswith(b"HTTP/1.1 200" if sent == GET else b"")


async def test_a_request_under_way_is_no_rest(enter: Enter, start: Start) -> None:
    front = await start(connection_idle=0.01)
    reader, writer = await enter(front, WAIT)
    await until(lambda: front.seen.opened == 1)
    assert await say(front) == b""
    front.seen.release.set()
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_the_connection_that_rests_longest_makes_room(
    enter: Enter, start: Start
) -> None:
    front = await start(connections=2)
    oldest, second = await enter(front), await enter(front)
    assert await is_served(second)
    newest = await enter(front)
    assert await is_served(newest)
    assert not await is_served(oldest)
    assert await is_served(second)
    for _, writer in (oldest, second, newest):
        writer.close()


async def test_when_all_are_busy_others_are_turned_away(
    enter: Enter, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    front = await start(connections=2)
    busy = [await enter(front, WAIT) for _ in range(2)]
    await until(lambda: front.seen.opened == 2)
    with caplog.at_level(logging.WARNING, "agenthost.front.server"):
        for _ in range(20):
            assert not await is_served(await enter(front))
    assert len(caplog.records) == 1
    front.seen.release.set()
    for reader, writer in busy:
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
    await until(lambda: not front.front.asgi.running)
    assert await is_served(await enter(front))


@dataclass(eq=False)
class Peer:
    """A connection as it is counted."""

    address: str

    def end(self) -> None:
        return

    def cancel(self) -> None:
        return


@pytest.mark.setting("server.connections_per_address")
@pytest.mark.parametrize(
    ("first", "second", "crowded"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1", True),
        ("127.0.0.1", "127.0.0.1", False),
        ("::1", "::1", False),
    ],
)
async def test_an_address_has_a_share_of_the_connections(
    first: str, second: str, crowded: bool
) -> None:
    connections = Connections(most=10, per_address=1, patience=1.0)
    peer = Peer(first)
    connections.add(peer)
    assert connections.crowded(second) == crowded
    connections.remove(peer)
    assert not connections.crowded(second)


class Exhausted(socket.socket):
    """A listener for which no descriptor is left, until one is."""

    attempts = 0
    missing = 3

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        self.attempts += 1
        if self.attempts <= self.missing:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


async def test_without_descriptors_it_waits_and_says_so_once(
    enter: Enter,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made: list[Exhausted] = []

    def listen(host: str, port: int, _timeout: float) -> socket.socket:
        made.append(Exhausted(socket.AF_INET, socket.SOCK_STREAM))
        made[0].settimeout(0)
        made[0].bind((host, port))
        made[0].listen()
        return made[0]

    monkeypatch.setattr("agenthost_front.serve.listen", listen)
    monkeypatch.setattr("agenthost_front.listening._BACK_OFF", 0.01)
    front = await start()
    with caplog.at_level(logging.WARNING):
        served = await enter(front)
        assert await is_served(served)
    assert made[0].attempts <= made[0].missing + 2
    assert [record.name for record in caplog.records] == ["agenthost.front.server"]
    assert "no file descriptor is left" in caplog.text
    served[1].close()


@pytest.fixture
def lowered() -> Iterator[int]:
    """Lower the soft limit of descriptors; give the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limit_of_descriptors_is_raised_to_what_may_be(lowered: int) -> None:
    assert raise_descriptor_limit() == lowered
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == lowered


async def test_stopping_with_connections_of_every_kind_logs_nothing(
    enter: Enter, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    front = await start(grace=0.1)
    kinds = [upgrade(), upgrade("/api/deaf"), STREAM, WAIT, GET, GET[:9]]
    streams = [await enter(front, sent) for sent in kinds * 3]
    await until(lambda: len(front.front.asgi.running) == 12)
    for _, writer in streams[:6]:
        writer.write_eof()
    for _, writer in streams[6:12]:
        writer.transport.abort()
    with caplog.at_level(logging.WARNING):
        await front.front.drain()
        await front.front.stop()
        await enter.leave()
        gc.collect()
    assert not caplog.records


def server_objects() -> Counter[str]:
    """What there is of a server's making, collected or not."""
    ours = ("agenthost_front", "hypercorn", "h11", "wsproto")
    kinds = (type(thing) for thing in gc.get_objects())
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Counter(name for name in names if name.startswith(ours))


async def leave_after_an_answer(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, GET)
    await reader.readuntil(b"}")
    writer.close()


async def break_off_a_stream(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, STREAM)
    await reader.readuntil(b"data: 0")
    writer.transport.abort()


async def read_a_stream(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, WHOLE)
    await reader.readuntil(b"data: 2")
    writer.close()


async def read_a_stream_of_quart(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, WHOLE.replace(b"/v1", b"/api"))
    await reader.readuntil(b"data: 2")
    writer.close()


async def talk_nonsense(_: Enter, front: Running) -> None:
    await say(front, b"NONSENSE\r\n\r\n")


async def reset_a_socket(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, upgrade(ECHO))
    await reader.readuntil(b"hello")
    reset(writer)


async def drop_a_socket(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, upgrade(ECHO))
    await reader.readuntil(b"hello")
    writer.transport.abort()


async def drop_a_deaf_socket(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, upgrade("/api/deaf"))
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


async def close_a_socket(enter: Enter, front: Running) -> None:
    reader, writer = await enter(front, upgrade(ECHO))
    await reader.readuntil(b"hello")
    writer.write(CLOSE)
    await reader.read()
    writer.close()


@pytest.mark.conformance
@pytest.mark.parametrize(
    "visit",
    [
        leave_after_an_answer,
        break_off_a_stream,
        read_a_stream,
        read_a_stream_of_quart,
        talk_nonsense,
        reset_a_socket,
        drop_a_socket,
        drop_a_deaf_socket,
        close_a_socket,
    ],
)
async def test_nothing_of_a_connection_waits_for_the_collector(
    enter: Enter, start: Start, visit: Callable[[Enter, Running], Awaitable[None]]
) -> None:
    front = await start(grace=0.01)
    before_tasks = asyncio.all_tasks()
    await visit(enter, front)
    await until(lambda: asyncio.all_tasks() <= before_tasks)
    gc.collect()
    gc.disable()
    try:
        before = server_objects()
        for _ in range(5):
            await visit(enter, front)
        await until(lambda: asyncio.all_tasks() <= before_tasks)
        await until(lambda: server_objects() <= before)
    finally:
        gc.enable()
