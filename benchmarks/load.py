"""The load generator, a process of its own: a plan on stdin, figures on stdout."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send: ``requests`` in all, the paths in turn, over kept connections."""

    port: int
    paths: tuple[str, ...]
    requests: int
    clients: int = 1
    body: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it; times in seconds."""

    requests: int
    seconds: float
    p50: float
    p99: float


class LoadError(Exception):
    """An answer was not 200."""


def run(plan: Plan) -> Outcome:
    """Carry out the plan in a process of its own.

    Raises:
        LoadError: An answer was not 200, or a connection broke.
    """
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=json.dumps(asdict(plan)),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise LoadError(answer.stderr.strip().splitlines()[-1])
    return Outcome(**json.loads(answer.stdout))


def request(port: int, path: str, body: str) -> bytes:
    """Write one request; a POST when it has a body."""
    data = body.encode()
    head = f"{'POST' if data else 'GET'} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
    if data:
        head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
    return head.encode() + b"\r\n" + data


class Connection:
    """A kept connection, opened anew when the server has announced its end."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, wire: bytes) -> None:
        """Send one request and read its whole answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(wire)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, found, rest = head.partition(b"\r\ncontent-length:")
        length = int(rest.partition(b"\r\n")[0]) if found else 0
        body = await reader.readexactly(length)
        if not head.startswith(b"http/1.1 200"):
            raise LoadError(f"{head.splitlines()[0]!r} {body[:200]!r}")
        if b"\r\nconnection: close" in head:
            await self.close()

    async def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def client(port: int, wires: Iterator[bytes], times: list[float]) -> None:
    """Send what is left, one request after another."""
    connection = Connection(port)
    for wire in wires:
        start = time.perf_counter()
        await asyncio.wait_for(connection.exchange(wire), 30)
        times.append(time.perf_counter() - start)
    await connection.close()


async def carry_out(plan: Plan) -> Outcome:
    """Run all clients until every request is answered."""
    known = [request(plan.port, path, plan.body) for path in plan.paths]
    wires = (known[number % len(known)] for number in range(plan.requests))
    times: list[float] = []
    start = time.perf_counter()
    await asyncio.gather(
        *(client(plan.port, wires, times) for _ in range(plan.clients))
    )
    seconds = time.perf_counter() - start
    p99 = sorted(times)[int(len(times) * 0.99)]
    return Outcome(len(times), seconds, statistics.median(times), p99)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(asdict(asyncio.run(carry_out(Plan(**given))))))
