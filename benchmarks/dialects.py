"""What each dialect adds to the bare HTTP client that reads the same bytes.

Run ``python -m benchmarks.dialects``. Both use the daemon's own transport and the same
kept connections against one scripted service in a process of its own. What our side
sends is recorded once and replayed by the bare client, which throws away what it reads.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
from agenthost import (
    ChatRequest,
    Completion,
    DialectSpec,
    EgressPolicy,
    Endpoint,
    Message,
    ModelCall,
    ProviderFacts,
    ProviderSpec,
    Role,
    Text,
)
from agenthost.daemon import Daemon
from agenthost.testing import installed_exchange

from . import run, servers
from .figures import Row

EVENTS = 50
CALLS = 50
ROUNDS = 8
HELLO = (Message(Role.USER, (Text("hello"),)),)
LIMITS = {"stream": (3.0, 2.0), "whole": (2.0, 1.0)}
"""Per manner: at most so many times the bare client's CPU, and its p50 added."""

Call = Callable[[], Awaitable[None]]


class WrongAnswer(Exception):
    """The words that were decoded are not those of the script."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds that one call takes."""

    cpu: float
    p50: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much to measure: calls a round, rounds, events a stream."""

    calls: int = CALLS
    rounds: int = ROUNDS
    events: int = EVENTS


@dataclass(frozen=True, slots=True)
class Ours:
    """A call through a dialect."""

    spec: ProviderSpec
    call: ModelCall
    words: str

    async def __call__(self) -> None:
        """Make the call and look at every delta."""
        said = None
        async for delta in self.call.exchange.open(self.spec, self.call):
            said = delta
        if not isinstance(said, Completion) or said.message.text != self.words:
            raise WrongAnswer(f"{self.spec.spoken_to('').name}: {said!r}")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as its maker handed it to the client."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class Bare:
    """The same requests by the client alone."""

    http: httpx.AsyncClient
    requests: Sequence[Sent]

    async def __call__(self) -> None:
        """Send them one after another and read what comes."""
        for sent in self.requests:
            async with self.http.stream(
                sent.method, sent.url, headers=sent.headers, content=sent.body
            ) as answer:
                if answer.status_code != httpx.codes.OK:
                    raise WrongAnswer(f"{sent.url}: {answer.status_code}")
                async for _ in answer.aiter_bytes():
                    pass


class Recorder(httpx.AsyncBaseTransport):
    """Hands requests to a client and notes what that would not add by itself."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.found: list[Sent] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Note the request and send it."""
        usual = {**self._http.headers, "host": request.url.netloc.decode()}
        headers = [
            (name, value)
            for name, value in request.headers.items()
            if usual.get(name) != value and name != "content-length"
        ]
        sent = Sent(request.method, str(request.url), headers, request.content)
        self.found.append(sent)
        return await self._http.send(request, stream=True)


async def recorded(ours: Ours) -> tuple[Sent, ...]:
    """Make the call once and return what it sent."""
    recorder = Recorder(ours.call.http)
    async with httpx.AsyncClient(
        transport=recorder, headers=ours.call.http.headers, trust_env=False
    ) as http:
        await replace(ours, call=replace(ours.call, http=http))()
    if not recorder.found:
        raise WrongAnswer(f"{ours.spec.spoken_to('').name} sent nothing")
    return tuple(recorder.found)


async def cost_of(call: Call, times: list[float], count: int) -> float:
    """Make calls one after another; note their times and return the CPU of one."""
    spent = time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    return (time.process_time() - spent) / count


async def compared(ours: Call, bare: Call, sizes: Sizes) -> tuple[Cost, Cost]:
    """Measure both in turns, so that a busy moment strikes both."""
    cpu: tuple[list[float], list[float]] = ([], [])
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(sizes.rounds):
        for side, call in enumerate((ours, bare)):
            cpu[side].append(await cost_of(call, times[side], sizes.calls))
    one, other = (
        Cost(statistics.median(c) * 1e6, statistics.median(t) * 1e6)
        for c, t in zip(cpu, times, strict=True)
    )
    return one, other


async def rows_of(
    daemon: Daemon, dialect: str, port: int, sizes: Sizes
) -> AsyncIterator[Row]:
    """Measure one dialect, streamed and whole."""
    policy = EgressPolicy(name="bench", allowed_hosts=frozenset({"127.0.0.1"}))
    http = daemon.egress.client(policy)
    dialects = {spec.name: spec for _, spec in daemon.registry.offered(DialectSpec)}
    spoken = dialects[dialect].make({})
    for manner, (cpu_limit, time_limit) in LIMITS.items():
        base = f"http://127.0.0.1:{port}/{dialect}/{manner}"
        spec = ProviderSpec(ProviderFacts("bench", "bench", base), spoken)
        request = ChatRequest("me/model", "", HELLO, stream=manner == "stream")
        call = ModelCall(
            request, Endpoint("bench", base, None), http, installed_exchange()
        )
        ours = Ours(spec, call, "word " * sizes.events)
        cost, bare = await compared(ours, Bare(http, await recorded(ours)), sizes)
        name = f"{dialect}, {manner}"
        yield Row(f"{name}, CPU", cost.cpu, "us", cpu_limit, bare.cpu)
        added = cost.p50 - bare.p50
        yield Row(f"{name}, added p50", added, "us", time_limit, bare.p50)


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[Daemon]:
    """Run a daemon for its transport and its dialects."""
    daemon = Daemon(home, environ={"AGENTHOST_LISTEN_ADDR": "127.0.0.1:0"})
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.stop()


async def measured(sizes: Sizes) -> AsyncIterator[Row]:
    """Measure every dialect that the installed plugins offer."""
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.module("dialect_upstream", str(sizes.events)) as upstream,
    ):
        async with running(Path(folder)) as daemon:
            offered = daemon.registry.offered(DialectSpec)
            for dialect in sorted(spec.name for _, spec in offered):
                async for row in rows_of(daemon, dialect, upstream.port, sizes):
                    yield row


async def main() -> int:
    """Print the table and keep its figures; 1 when a target is missed."""
    started = run.begin()
    rows = []
    async for row in measured(Sizes()):
        run.tell(started, row)
        rows.append(row)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
