"""The rows: each measures ours and its yardstick in the same run."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

from . import install, load, mcp_turns, measure, servers, sockets, writes
from .crowds import Crowd, crowd_rows
from .figures import Row
from .idle_channels import channel_rows
from .nodes import node_rows
from .triggers import trigger_rows
from .workflows import workflow_rows

REQUESTS = 300
"""In one round."""
ROUNDS = 7
TURNS_OF_AN_AGENT = 25
"""Below the compaction threshold, so that a turn is one call of the model."""
SOCKETS = 1_000
NEEDED = frozenset(
    {
        "capability_inheritance_validation",
        "path_traversal_prevention",
        "ssrf_protection",
    }
)
"""Security systems without which no agent is made and no model asked."""
SETTLED = 2.0
"""Seconds after which a daemon has done all that it does by itself."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The servers of one run."""

    daemon: servers.Server
    hello: servers.Server


Side = tuple[servers.Server, load.Plan]


def cpu_us(sides: Sequence[Side]) -> list[float]:
    """CPU microseconds a request of each side's process tree, warmed up.

    The sides are measured in turns and the median of the rounds counts: what else
    happens on the machine then meets them all.
    """
    spent: list[list[float]] = [[] for _ in sides]
    for number in range(ROUNDS + 1):
        for (server, plan), costs in zip(sides, spent, strict=True):
            seconds = measure.cpu_of(server.pid, partial(load.run, plan))
            if number:
                costs.append(seconds / plan.requests * 1e6)
    return [statistics.median(costs) for costs in spent]


def request_rows(bench: Bench) -> Iterator[Row]:
    """CPU per request beside a stock Quart hello, with 1 and with 32 clients."""
    bench.daemon.spawn_agents("listed", 1)
    for clients in (1, 32):
        plans = [
            load.Plan(bench.daemon.port, (path,), REQUESTS, clients)
            for path in ("/api/health", "/api/agents")
        ]
        yardstick, health, agents = beside_hello(bench, clients, *plans)
        told = _clients(clients)
        yield Row(f"GET /api/health, CPU, {told}", health, "us", 1.0, yardstick)
        yield Row(f"GET /api/agents, CPU, {told}", agents, "us", 2.0, yardstick)
    for clients in (1, 32):
        plan = message_plan(bench.daemon, clients)
        yardstick, message = beside_hello(bench, clients, plan)
        name = f"POST message, CPU, {_clients(clients)}"
        yield Row(name, message, "us", 6.0, yardstick)


def mcp_rows(bench: Bench) -> Iterator[Row]:
    """A tool called over MCP beside a bare route of Quart that takes as much JSON.

    And beside a route of the same daemon that keeps nothing: half of a call is the
    durable row in the audit trail.
    """
    call = {"name": "calculate", "arguments": {"expression": "6*7"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    body, port = json.dumps(asked), bench.daemon.port
    for clients in (1, 32):
        plain = load.Plan(bench.hello.port, ("/echo",), REQUESTS, clients, body)
        own = load.Plan(port, ("/api/health",), REQUESTS, clients)
        plan = load.Plan(port, ("/mcp",), REQUESTS, clients, body)
        sides = ((bench.hello, plain), (bench.daemon, own), (bench.daemon, plan))
        yardstick, health, called = cpu_us(sides)
        told = _clients(clients)
        yield Row(f"MCP tools/call, CPU, {told}", called, "us", 3.0, yardstick)
        yield Row(f"MCP tools/call beside health, {told}", called, "us", 6.0, health)


def many_tools_rows(upstream_port: int) -> Iterator[Row]:
    """A message where very many tools of MCP servers are known, beside few."""
    few, many = (1, mcp_turns.SHOWN), (mcp_turns.SERVERS, mcp_turns.TOOLS)
    told = f"{mcp_turns.SERVERS * mcp_turns.TOOLS} MCP tools known"
    with (
        mcp_turns.knowing(upstream_port, *few) as small,
        mcp_turns.knowing(upstream_port, *many) as large,
    ):
        for shown, manifest in (
            (0, mcp_turns.ALONE),
            (mcp_turns.SHOWN, mcp_turns.WITH_TOOLS),
        ):
            sides = [
                (daemon, message_plan(daemon, 1, manifest)) for daemon in (small, large)
            ]
            yardstick, ours = cpu_us(sides)
            name = f"message, {told}, {shown} shown, CPU"
            yield Row(name, ours, "us", mcp_turns.LIMIT, yardstick)


def systems_rows(upstream_port: int) -> Iterator[Row]:
    """A message with the security systems that there are, beside one with few."""
    every = {each.name for each in entry_points(group="agenthost.security")}
    spared = sorted(f"security:{name}" for name in every - NEEDED)
    few = f"\n[plugins]\ndisable = {json.dumps(spared)}\n"
    with ExitStack() as stack:
        sides = []
        for more in (few, ""):
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            servers.write_home(home, upstream_port, more)
            sides.append(stack.enter_context(servers.daemon(home))[0])
        for clients in (1, 32):
            plans = [(each, message_plan(each, clients)) for each in sides]
            yardstick, ours = cpu_us(plans)
            name = f"message, {len(spared)} systems more, CPU, {_clients(clients)}"
            yield Row(name, ours, "us", 1.25, yardstick)


def beside_hello(bench: Bench, clients: int, *plans: load.Plan) -> list[float]:
    """Measure the hello, then the daemon by each plan."""
    hello = load.Plan(bench.hello.port, ("/",), REQUESTS, clients)
    return cpu_us([(bench.hello, hello), *((bench.daemon, plan) for plan in plans)])


def message_plan(
    daemon: servers.Server, clients: int, manifest: str = servers.MANIFEST
) -> load.Plan:
    """Spread the turns over agents, so that no session grows long."""
    count = REQUESTS * (ROUNDS + 1) // TURNS_OF_AN_AGENT
    prefix = f"bench-{clients}-{'mcp' * (manifest != servers.MANIFEST)}"
    agents = daemon.spawn_agents(prefix, count, manifest)
    paths = tuple(f"/api/agents/{agent}/message" for agent in agents)
    body = json.dumps({"message": "hello"})
    return load.Plan(daemon.port, paths, REQUESTS, clients, body)


def _clients(count: int) -> str:
    return "1 client" if count == 1 else f"{count} clients"


def memory_rows(bench: Bench) -> Iterator[Row]:
    """Idle memory beside a bare embedded Hypercorn and Quart, one request each.

    Measured once what a start does afterwards is done: without agents, and with one,
    for whom the daemon has made itself ready to ask a model.
    """
    bench.hello.ask("/")
    yardstick = measure.pss_kb(bench.hello.pid) / 1e3
    for agents, limit in ((0, 2.4), (1, 2.7)):
        bench.daemon.spawn_agents("idle", agents)
        time.sleep(SETTLED)
        ours = measure.pss_kb(bench.daemon.pid) / 1e3
        name = "idle memory, PSS" + (", with an agent" if agents else "")
        yield Row(name, ours, "MB", limit, yardstick)


def socket_row(bench: Bench) -> Row:
    """Memory of an idle WebSocket."""
    (agent,) = bench.daemon.spawn_agents("socket", 1)
    path = f"/api/agents/{agent}/ws"
    with sockets.held_open(bench.daemon.port, path, 10):
        before = measure.pss_kb(bench.daemon.pid)
        with sockets.held_open(bench.daemon.port, path, SOCKETS):
            after = measure.pss_kb(bench.daemon.pid)
    return Row("idle WebSocket", (after - before) / SOCKETS, "kB", 60)


def cold_start_row(home: Path) -> Row:
    """Time to the first answered GET /api/agents, on a home that was used before."""
    seconds = []
    for _ in range(6):
        with servers.daemon(home) as (_, start):
            seconds.append(start)
    bare = measure.wall_of([sys.executable, "-I", "-S", "-c", "pass"], 21)
    ours = statistics.median(seconds[1:])
    return Row("cold start", ours * 1e3, "ms", 60, bare * 1e3)


def write_row() -> Row:
    """Durable commits a second of 64 callers."""
    with tempfile.TemporaryDirectory(dir=install.ROOT) as folder:
        ours = asyncio.run(writes.of_store(Path(folder), 300))
        yardstick = asyncio.run(writes.of_sqlalchemy(Path(folder), 20))
    return Row("durable writes, 64 callers", ours, "/s", 15, yardstick, at_least=True)


def install_rows() -> Iterator[Row]:
    """What a plain install brings."""
    size, count = install.size_and_count()
    yield Row("install size", size, "MB", 130)
    yield Row("installed distributions", count, "", 90)


def daemon_rows(home: Path) -> Iterator[Row]:
    """Everything that needs a daemon."""
    with servers.module("upstream") as upstream, servers.module("baseline_hello") as h:
        servers.write_home(home, upstream.port)
        yield cold_start_row(home)
        with servers.daemon(home) as (daemon, _):
            bench = Bench(daemon, h)
            yield from memory_rows(bench)
            yield socket_row(bench)
            yield from request_rows(bench)
            yield from mcp_rows(bench)
            yield from workflow_rows(daemon)
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder)
            servers.write_home(other, upstream.port)
            with servers.daemon(other) as (daemon, _):
                yield from crowd_rows(daemon, Crowd())
        yield from channel_rows(upstream.port)
        yield from many_tools_rows(upstream.port)
        yield from systems_rows(upstream.port)


def all_rows() -> Iterator[Row]:
    """Every row, one after another."""
    sockets.allow_many_files()
    yield write_row()
    with tempfile.TemporaryDirectory() as folder:
        yield from daemon_rows(Path(folder))
        yield from trigger_rows(Path(folder))
    yield from node_rows()
    yield from install_rows()
