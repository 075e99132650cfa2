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
    """What to send: ``requests`` in all, the paths in turn, over kept connections.

    With a ``rate`` so many begin each second, as long as one of the clients is free;
    what a request waits for a client counts.
    """

    port: int
    paths: tuple[str, ...]
    requests: int
    clients: int = 1
    body: str = ""
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it; times in seconds, ``first`` the median until an answer began."""

    requests: int
    seconds: float
    p50: float
    p99: float
    first: float


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

    async def exchange(self, wire: bytes) -> float:
        """Send one request and read its whole answer; tell when its body began."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(wire)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"\r\ntransfer-encoding: chunked" in head:
            body = await _chunk(reader)
            began = time.perf_counter()
            last = body
            while last:
                last = await _chunk(reader)
        else:
            _, found, rest = head.partition(b"\r\ncontent-length:")
            length = int(rest.partition(b"\r\n")[0]) if found else 0
            body = await reader.readexactly(length)
            began = time.perf_counter()
        if not head.startswith(b"http/1.1 200"):
            raise LoadError(f"{head.splitlines()[0]!r} {body[:200]!r}")
        if b"\r\nconnection: close" in head:
            await self.close()
        return began

    async def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    """Read a chunk of a body; the last one is empty."""
    size = int(await reader.readuntil(b"\r\n"), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def client(
    port: int, wires: Iterator[tuple[float, bytes]], times: list[tuple[float, float]]
) -> None:
    """Send what is left, one request after another, none before its moment."""
    connection = Connection(port)
    for moment, wire in wires:
        if (early := moment - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        start = moment or time.perf_counter()
        began = await asyncio.wait_for(connection.exchange(wire), 30)
        times.append((time.perf_counter() - start, began - start))
    await connection.close()


async def carry_out(plan: Plan) -> Outcome:
    """Run all clients until every request is answered."""
    known = [request(plan.port, path, plan.body) for path in plan.paths]
    times: list[tuple[float, float]] = []
    start = time.perf_counter()
    wires = (
        (start + number / plan.rate if plan.rate else 0.0, known[number % len(known)])
        for number in range(plan.requests)
    )
    await asyncio.gather(
        *(client(plan.port, wires, times) for _ in range(plan.clients))
    )
    seconds = time.perf_counter() - start
    whole = sorted(took for took, _ in times)
    p99 = whole[int(len(whole) * 0.99)]
    first = statistics.median(began for _, began in times)
    return Outcome(len(whole), seconds, statistics.median(whole), p99, first)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(asdict(asyncio.run(carry_out(Plan(**given))))))
