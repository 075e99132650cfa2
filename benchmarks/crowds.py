"""What many agents and many WebSockets cost a daemon that has nothing to do."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from dataclasses import dataclass

from . import measure, servers, sockets
from .figures import Row


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many there are, and for how long they are watched."""

    agents: int = 500
    idle: int = 60
    passing: int = 10_000
    at_once: int = 50
    seconds: float = 15.0
    """Three times the period at which a socket is told of the agents."""
    rest: float = 30.0
    """Seconds after which what a closed socket held is given back."""


def crowd_rows(daemon: servers.Server, crowd: Crowd) -> Iterator[Row]:
    """CPU and answers while sockets are idle, and memory when many have gone."""
    agents = daemon.spawn_agents("crowd", crowd.agents)
    path = f"/api/agents/{agents[0]}/ws"
    with sockets.held_open(daemon.port, path, crowd.idle):
        spent = measure.cpu_of(daemon.pid, lambda: time.sleep(crowd.seconds))
        slowest = health_p99(daemon.port, crowd.seconds)
    told = f"{crowd.agents} agents, {crowd.idle} sockets"
    yield Row(f"{told}, CPU", spent / crowd.seconds * 100, "%", 1)
    yield Row(f"{told}, health p99", slowest * 1e3, "ms", 20)
    come_and_go(daemon.port, path, crowd.at_once, crowd.at_once * 10)
    time.sleep(crowd.rest)
    before = measure.pss_kb(daemon.pid)
    come_and_go(daemon.port, path, crowd.at_once, crowd.passing)
    time.sleep(crowd.rest)
    kept = (measure.pss_kb(daemon.pid) - before) / 1e3
    yield Row(f"{crowd.passing} sockets came and went", kept, "MB", 10)


def come_and_go(port: int, path: str, at_once: int, count: int) -> None:
    """Open and close so many sockets, some at a time."""
    for _ in range(0, count, at_once):
        with sockets.held_open(port, path, at_once):
            pass


def health_p99(port: int, seconds: float) -> float:
    """Ask for health all the time, not all at once; return the 99th percentile."""
    times = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        start = time.perf_counter()
        connection.request("GET", "/api/health")
        connection.getresponse().read()
        times.append(time.perf_counter() - start)
        time.sleep(0.02)
    connection.close()
    return sorted(times)[int(len(times) * 0.99)]
