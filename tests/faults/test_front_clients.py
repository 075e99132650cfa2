"""Hostile clients in numbers; each figure is printed beside its limit."""

from __future__ import annotations

import asyncio
import os
import resource
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

pytestmark = pytest.mark.faults

GET = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
UPGRADE = (
    "GET /api/agents/{}/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Extensions: permessage-deflate\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon in a process of its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # What it has open is counted from outside.
    environ = {"AGENTHOST_SECRET_ZEROIZATION__DEBUGGABLE": "true"}
    with DaemonProcess(tmp_path / "home", environ) as process:
        yield process


def address(daemon: DaemonProcess) -> tuple[str, int]:
    """Where it listens."""
    url = urlsplit(str(daemon.http.base_url))
    return str(url.hostname), int(url.port or 0)


def descriptors(daemon: DaemonProcess) -> int:
    """What it has open."""
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def resident(daemon: DaemonProcess) -> float:
    """Its memory in MB."""
    pages = Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize() / 1e6


def agent(daemon: DaemonProcess) -> str:
    """Make an agent; return its id."""
    answer = daemon.http.post("/api/agents", json={"manifest_toml": 'name = "a"'})
    return str(answer.json()["agent_id"])


def told(what: str, figure: float, limit: float) -> None:
    """Print a figure beside its limit and hold it to it."""
    sys.stdout.write(f"\n{what}: {figure:.1f} (limit {limit})\n")
    assert figure <= limit, what


class Health:
    """Asks for the daemon's health all the while, from a thread of its own."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._url = f"{daemon.http.base_url}/api/health"
        self._took: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def p99(self) -> float:
        """Of a hundred answers the slowest but one, in milliseconds."""
        return sorted(self._took)[int(len(self._took) * 0.99)] * 1000

    def _ask(self) -> None:
        with httpx.Client(timeout=30, trust_env=False) as client:
            while not self._over.wait(0.02):
                began = time.perf_counter()
                assert client.get(self._url).status_code == 200
                self._took.append(time.perf_counter() - began)


async def one_shot(place: tuple[str, int]) -> None:
    """Ask once, then leave."""
    reader, writer = await asyncio.open_connection(*place)
    writer.write(GET)
    assert (await reader.read(64)).startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()


async def open_and_drop(place: tuple[str, int], agent_id: str) -> None:
    """Open a WebSocket, see that it is served, and drop it."""
    reader, writer = await asyncio.open_connection(*place)
    writer.write(UPGRADE.format(agent_id).encode())
    await reader.readuntil(b'"connected"')
    writer.transport.abort()


async def in_waves(count: int, make: object, *arguments: object) -> None:
    """Do something often, a wave at a time: an address may have 64 sockets."""
    assert callable(make)
    async with asyncio.timeout(300):
        for _ in range(count // 25):
            await asyncio.gather(*(make(*arguments) for _ in range(25)))


async def closed(writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
    """Wait until the server has closed a connection."""
    await asyncio.gather(reader.read(), return_exceptions=True)
    writer.close()


async def test_one_shot_connections_leave_no_descriptor(daemon: DaemonProcess) -> None:
    place = address(daemon)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (256, 256))
    await in_waves(500, one_shot, place)
    await asyncio.sleep(0.5)
    base = descriptors(daemon)
    with Health(daemon) as health:
        await in_waves(10_000, one_shot, place)
    await asyncio.sleep(0.5)
    told("descriptors beyond base after 10,000", descriptors(daemon) - base, 5)
    told("health p99 in ms meanwhile", health.p99, 500)
    assert not daemon.log.count("descriptor")


async def test_sockets_that_come_and_go_leave_no_memory(daemon: DaemonProcess) -> None:
    place, one = address(daemon), agent(daemon)
    await in_waves(500, open_and_drop, place, one)
    await asyncio.sleep(1)
    warm = resident(daemon)
    with Health(daemon) as health:
        await in_waves(10_000, open_and_drop, place, one)
        await asyncio.sleep(1)
        first = resident(daemon)
        await in_waves(10_000, open_and_drop, place, one)
        await asyncio.sleep(1)
        second = resident(daemon)
    told("MB after the first 10,000 sockets", first - warm, 10)
    told("MB after the second 10,000 sockets", second - first, 2)
    told("health p99 in ms meanwhile", health.p99, 500)


async def test_compressed_frames_are_not_inflated(daemon: DaemonProcess) -> None:
    place, one = address(daemon), agent(daemon)
    packer = zlib.compressobj(wbits=-15)
    bomb = packer.compress(bytes(100_000_000)) + packer.flush(zlib.Z_SYNC_FLUSH)
    frame = b"\xc1\xff" + struct.pack("!Q", len(bomb) - 4) + bytes(4) + bomb[:-4]
    await open_and_drop(place, one)
    before = resident(daemon)
    with Health(daemon) as health:
        for _ in range(16):
            reader, writer = await asyncio.open_connection(*place)
            writer.write(UPGRADE.format(one).encode())
            await reader.readuntil(b'"connected"')
            writer.write(frame)
            async with asyncio.timeout(30):
                assert struct.pack("!H", 1002) in await reader.read()
            writer.close()
            await asyncio.sleep(0.1)
    told("MB after 16 bombs of 100 MB", resident(daemon) - before, 20)
    told("health p99 in ms meanwhile", health.p99, 500)


async def test_without_descriptors_it_goes_on_and_logs_little(
    daemon: DaemonProcess,
) -> None:
    place = address(daemon)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (64, 64))
    before = len(daemon.log.splitlines())
    streams = []
    with Health(daemon) as health:
        for _ in range(150):
            reader, writer = await asyncio.open_connection(*place)
            writer.write(GET[:20])
            streams.append((reader, writer))
        await asyncio.sleep(10)
    lines = len(daemon.log.splitlines()) - before
    told("lines of log in 10 s without descriptors", lines, 11)
    told("health p99 in ms meanwhile", health.p99, 500)
    for _, writer in streams:
        writer.transport.abort()
    await in_waves(100, one_shot, place)


async def test_slow_clients_are_closed(daemon: DaemonProcess) -> None:
    place = address(daemon)
    post = b"POST /api/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"
    kinds = [b"", GET[:20], GET[:-2], GET, post, post + b"abc"]
    base = descriptors(daemon)
    streams = []
    with Health(daemon) as health:
        began = time.perf_counter()
        for number in range(1_000):
            reader, writer = await asyncio.open_connection(*place)
            writer.write(kinds[number % len(kinds)])
            streams.append((writer, reader))
        await asyncio.gather(*(closed(*stream) for stream in streams))
        took = time.perf_counter() - began
    told("seconds until 1,000 slow clients were closed", took, 40)
    told("health p99 in ms meanwhile", health.p99, 500)
    await asyncio.sleep(1)
    told("descriptors beyond base", descriptors(daemon) - base, 5)
