"""Clients that leave, never read, or are slow; and a model that never stops speaking.

Whatever they do, what they held comes back: turns end, descriptors and memory are given
back, and everybody else is served meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess
from agenthost.testing.simulators import Heard, Turn
from aiohttp import web

from .laws import Rows
from .oracle import WIRE, Oracle, Scene
from .waiting import soon
from .worlds import CHOICE, client

AGENTS = 50
LONGEST_END = 60.0
REST = 25.0
"""Seconds; a daemon looks every ten whether it may give memory back."""
MB = 1e6


def asks_for_a_summary(heard: Heard) -> bool:
    """Tell whether it is the daemon that asks, to compact a session."""
    return heard.said[-1].startswith("Summarize this conversation:")


class EndlessOracle(Oracle):
    """Speaks as long as anybody listens."""

    async def answer(
        self, request: web.Request, scene: Scene, heard: Heard
    ) -> web.StreamResponse:
        """Stream words for ever, but for a summary."""
        if asks_for_a_summary(heard):
            return await super().answer(request, scene, heard)
        response = web.StreamResponse(headers={"Content-Type": WIRE.content_type})
        await response.prepare(request)
        words = WIRE.events(Turn("endless words " * 100))[1:-2]
        while True:
            for event in words:
                await response.write(event)


class SilentOracle(Oracle):
    """Says a few words and then nothing, until nobody listens."""

    async def answer(
        self, request: web.Request, scene: Scene, heard: Heard
    ) -> web.StreamResponse:
        """Stream some words, or a whole summary."""
        if asks_for_a_summary(heard):
            return await super().answer(request, scene, heard)
        response = web.StreamResponse(headers={"Content-Type": WIRE.content_type})
        await response.prepare(request)
        for event in WIRE.events(Turn("a few words"))[:-2]:
            await response.write(event)
        await asyncio.Event().wait()
        return response


class Place:
    """A daemon of many agents, seen from outside."""

    def __init__(
        self, process: DaemonProcess, http: httpx.AsyncClient, home: Path
    ) -> None:
        self.http = http
        self.port = http.base_url.port or 80
        self.agents: list[str] = []
        self._proc = Path("/proc") / str(process.process.pid)
        self._rows = Rows(home / "data/agenthost.db")

    async def settle(self) -> None:
        """Make the agents."""
        for number in range(AGENTS):
            manifest = f'name = "agent{number}"\n[capabilities]\ntools = []\n'
            answer = await self.http.post(
                "/api/agents", json={"manifest_toml": manifest}
            )
            self.agents.append(answer.json()["agent_id"])

    def request(self, number: int) -> bytes:
        """Write the request of a stream."""
        body = json.dumps({"message": f"speak {number}"}).encode()
        path = f"/api/agents/{self.agents[number % AGENTS]}/message/stream"
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def descriptors(self) -> int:
        """Count what the daemon holds open."""
        try:
            return sum(1 for _ in (self._proc / "fd").iterdir())
        except PermissionError:
            pytest.skip("needs to read the daemon's descriptors")

    def memory(self) -> float:
        """Resident megabytes."""
        status = (self._proc / "status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024 / MB

    async def memory_at_rest(self) -> float:
        """Resident megabytes once the daemon had time to give back what it can."""
        await asyncio.sleep(REST)
        return self.memory()

    async def no_turn_runs(self) -> None:
        """Wait until every turn has ended."""
        await soon(lambda: not self._rows.running(), "turns run on", LONGEST_END)

    async def nothing_runs(self, descriptors: int) -> float:
        """Wait until turns and connections are gone; return the seconds."""
        started = time.monotonic()
        await self.no_turn_runs()
        told = f"more than {descriptors} descriptors"
        await soon(lambda: self.descriptors() <= descriptors, told, LONGEST_END)
        return time.monotonic() - started


@asynccontextmanager
async def place_with(oracle: Oracle, folder: Path) -> AsyncIterator[Place]:
    """Start a daemon whose model is the oracle."""
    home = folder / "home"
    home.mkdir()
    async with oracle:
        (home / "config.toml").write_text(oracle.config, encoding="utf-8")
        with await asyncio.to_thread(DaemonProcess, home, CHOICE) as process:
            async with client(str(process.http.base_url)) as http:
                place = Place(process, http, home)
                await place.settle()
                yield place


async def hear_and_leave(place: Place, number: int) -> None:
    """Read the first words of a stream and close the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    writer.write(place.request(number))
    async with asyncio.timeout(LONGEST_END):
        await reader.readuntil(b"event: chunk")
    writer.close()


async def leave_in_waves(place: Place, clients: int) -> None:
    for wave in range(0, clients, AGENTS):
        numbers = range(wave, min(wave + AGENTS, clients))
        await asyncio.gather(*(hear_and_leave(place, n) for n in numbers))
        await place.no_turn_runs()


async def leaving(folder: Path, clients: int) -> str:
    async with place_with(SilentOracle(), folder) as place:
        await leave_in_waves(place, AGENTS)
        base = place.descriptors()
        await leave_in_waves(place, clients)
        seconds = await place.nothing_runs(base)
        assert (await place.http.get("/api/health")).json()["status"] == "ok"
    return (
        f"{clients} left in mid-stream: descriptors back at {base}, no turn runs, "
        f"{seconds:.1f} s after the last (limit {LONGEST_END:.0f})"
    )


async def test_clients_that_leave_in_mid_stream_end_their_turns(
    tmp_path: Path,
) -> None:
    await leaving(tmp_path, 2 * AGENTS)


@pytest.mark.faults
async def test_a_thousand_clients_leave_in_mid_stream(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    figures(await leaving(tmp_path, 1_000))


@pytest.mark.faults
async def test_endless_answers_take_no_lasting_memory(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    async with place_with(EndlessOracle(), tmp_path) as place:
        await leave_in_waves(place, AGENTS)
        descriptors, base = place.descriptors(), await place.memory_at_rest()
        await asyncio.gather(*(listen(place, n, 3.0) for n in range(AGENTS)))
        await place.nothing_runs(descriptors)
        grown = await place.memory_at_rest() - base
        figures(
            f"{AGENTS} endless answers: {grown:.0f} MB stay over {base:.0f} (limit 20)"
        )
        assert grown < 20


async def listen(place: Place, number: int, seconds: float) -> None:
    """Read for a while, then leave."""
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    writer.write(place.request(number))
    until = time.monotonic() + seconds
    while time.monotonic() < until and await reader.read(65536):
        pass
    writer.close()


@pytest.mark.faults
async def test_clients_that_never_read_are_left(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    async with place_with(EndlessOracle(), tmp_path) as place:
        await leave_in_waves(place, AGENTS)
        descriptors, base = place.descriptors(), await place.memory_at_rest()
        silent = [never_reading(place, number) for number in range(AGENTS)]
        seconds = await place.nothing_runs(descriptors)
        for connection in silent:
            connection.close()
        grown = await place.memory_at_rest() - base
        figures(
            f"{AGENTS} that never read: gone in {seconds:.0f} s (limit "
            f"{LONGEST_END:.0f}), {grown:.0f} MB stay over {base:.0f} (limit 20)"
        )
        assert grown < 20


def never_reading(place: Place, number: int) -> socket.socket:
    """Ask for a stream with the smallest buffer, and read nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", place.port))
    connection.sendall(place.request(number))
    return connection


@pytest.mark.faults
@pytest.mark.parametrize("sent", [b"POST /api", b"POST /api HTTP/1.1\r\nhost: x\r\n"])
async def test_clients_with_slow_heads_are_left_and_keep_nobody_waiting(
    tmp_path: Path, figures: Callable[[str], None], sent: bytes
) -> None:
    async with place_with(Oracle(), tmp_path) as place:
        descriptors = place.descriptors()
        slow = []
        for _ in range(300):
            _, writer = await asyncio.open_connection("127.0.0.1", place.port)
            writer.write(sent)
            slow.append(writer)
        longest = 0.0
        for _ in range(50):
            started = time.perf_counter()
            assert (await place.http.get("/api/health")).status_code == 200
            longest = max(longest, time.perf_counter() - started)
        seconds = await place.nothing_runs(descriptors + 5)
        for writer in slow:
            writer.close()
        figures(
            f"300 slow heads: gone in {seconds:.0f} s (limit {LONGEST_END:.0f}), "
            f"health meanwhile at most {longest * 1e3:.0f} ms (limit 500)"
        )
        assert longest < 0.5
