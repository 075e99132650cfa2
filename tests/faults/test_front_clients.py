"""Hostile clients in numbers; each figure is printed beside its limit."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
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
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2
    )
    with DaemonProcess(tmp_path / "home") as process:
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
    print(f"{what}: {figure:.1f} (limit {limit})")
    assert figure <= limit, what


class Health:
    """Asks for the daemon's health all the while; ``p99`` is in milliseconds."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._url = f"{daemon.http.base_url}/api/health"
        self._took: list[float] = []

    async def __aenter__(self) -> Health:
        self._task = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def p99(self) -> float:
        assert self._took
        return sorted(self._took)[int(len(self._took) * 0.99)] * 1000

    async def _ask(self) -> None:
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            while True:
                began = time.perf_counter()
                assert (await client.get(self._url)).status_code == 200
                self._took.append(time.perf_counter() - began)
                await asyncio.sleep(0.02)


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
    for _ in range(count // 25):
        await asyncio.gather(*(make(*arguments) for _ in range(25)))


async def test_one_shot_connections_leave_no_descriptor(daemon: DaemonProcess) -> None:
    place = address(daemon)
    await in_waves(500, one_shot, place)
    base = descriptors(daemon)
    await in_waves(10_000, one_shot, place)
    await asyncio.sleep(0.5)
    told("descriptors beyond base after 10,000", descriptors(daemon) - base, 5)


async def test_sockets_that_come_and_go_leave_no_memory(daemon: DaemonProcess) -> None:
    place, one = address(daemon), agent(daemon)
    await in_waves(500, open_and_drop, place, one)
    await asyncio.sleep(1)
    warm = resident(daemon)
    async with Health(daemon) as health:
        await in_waves(10_000, open_and_drop, place, one)
        await asyncio.sleep(1)
        first = resident(daemon)
        await in_waves(10_000, open_and_drop, place, one)
        await asyncio.sleep(1)
        second = resident(daemon)
    told("MB after the first 10,000 sockets", first - warm, 10)
    told("MB after the second 10,000 sockets", second - first, 2)
    told("health p99 in ms meanwhile", health.p99, 250)
