"""``make bench-peers``: ``/v1`` beside LiteLLM's proxy, on the same upstream.

LiteLLM has an environment of its own, ``.cache/litellm``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import load, measure, run, servers
from .figures import Row

PROXY = Path(".cache/litellm/bin/litellm")
PROXY_CONFIG = """\
model_list:
  - model_name: bench-model
    litellm_params:
      model: openai/bench-model
      api_base: http://127.0.0.1:{port}/v1
      api_key: sk-bench
"""
GATEWAY = """\
[openai]
passthrough = true

[budget]
max_hourly_usd = 1000000.0
max_daily_usd = 1000000.0

[[providers.bench.models]]
id = "bench-model"
input_cost_per_1m = 0.1
output_cost_per_1m = 0.2
"""
PATH = "/v1/chat/completions"
START_SECONDS = 120
ROUNDS = 5
REQUESTS = 200
RATE = 1_000.0
SECONDS = 60
CONNECTIONS = 32


@dataclass(frozen=True, slots=True)
class Side:
    """Somebody who answers ``/v1/chat/completions``, and the name of a model."""

    server: servers.Server
    model: str

    def plan(self, clients: int, *, stream: bool, rate: float = 0.0) -> load.Plan:
        """Ask a plain question, again and again."""
        said = [{"role": "user", "content": "hello"}]
        body = json.dumps({"model": self.model, "messages": said, "stream": stream})
        count = int(SECONDS * rate) or REQUESTS
        return load.Plan(self.server.port, (PATH,), count, clients, body, rate)


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians of the rounds: CPU and times a request in ms, requests a second."""

    cpu: float
    p50: float
    first: float
    rate: float


def measured(sides: Sequence[Side], clients: int, *, stream: bool) -> list[Figures]:
    """Measure the sides in turns: what else the machine does meets them all."""
    rounds: list[list[Figures]] = [[] for _ in sides]
    for number in range(ROUNDS + 1):
        for side, found in zip(sides, rounds, strict=True):
            one = _once(side, side.plan(clients, stream=stream))
            if number:
                found.append(one)
    names = Figures.__slots__
    return [
        Figures(*(statistics.median(getattr(one, n) for one in each) for n in names))
        for each in rounds
    ]


def _once(side: Side, plan: load.Plan) -> Figures:
    outcomes: list[load.Outcome] = []
    cpu = measure.cpu_of(side.server.pid, lambda: outcomes.append(load.run(plan)))
    (done,) = outcomes
    return Figures(
        cpu / plan.requests * 1e3,
        done.p50 * 1e3,
        done.first * 1e3,
        done.requests / done.seconds,
    )


@dataclass(frozen=True, slots=True)
class Faces:
    """All sides of one run."""

    upstream: Side
    proxy: Side
    agent: Side
    passthrough: Side

    def rows(self) -> Iterator[Row]:
        """Every row: as an agent, and as a model itself."""
        sides = (self.upstream, self.proxy, self.agent, self.passthrough)
        for clients in (1, 32):
            told = "1 client" if clients == 1 else f"{clients} clients"
            direct, proxy, *ours = measured(sides, clients, stream=False)
            for name, one in zip(("agent", "model"), ours, strict=True):
                what = f"/v1 {name}, {told}"
                yield Row(f"{what}, CPU", one.cpu, "ms", 1 / 15, proxy.cpu)
                if clients == 1:
                    added = one.p50 - direct.p50, proxy.p50 - direct.p50
                    yield Row(f"{what}, added p50", added[0], "ms", 1 / 8, added[1])
                else:
                    rates = one.rate, proxy.rate
                    yield Row(
                        f"{what}, rate", rates[0], "/s", 10, rates[1], at_least=True
                    )
            direct, proxy, *ours = measured(sides, clients, stream=True)
            for name, one in zip(("agent", "model"), ours, strict=True):
                what = f"/v1 {name}, 50 chunks, {told}"
                yield Row(f"{what}, CPU", one.cpu, "ms", 1 / 25, proxy.cpu)
                if clients == 1:
                    added_first = one.first - direct.first
                    yield Row(f"{what}, added first", added_first, "ms", 1.5)


def steady_rows(upstream: Side, passthrough: Side) -> Iterator[Row]:
    """A minute of 1,000 requests a second: what is added, and what memory grows by."""
    plans = [
        side.plan(CONNECTIONS, stream=False, rate=RATE)
        for side in (upstream, passthrough)
    ]
    direct = load.run(plans[0])
    # What a first minute allocates once is no growth.
    load.run(passthrough.plan(CONNECTIONS, stream=False))
    pid = passthrough.server.pid
    before = measure.pss_kb(pid)
    outcomes: list[load.Outcome] = []
    cpu = measure.cpu_of(pid, lambda: outcomes.append(load.run(plans[1])))
    (ours,) = outcomes
    rate = ours.requests / ours.seconds
    reached = "1,000/s for a minute, reached"
    yield Row(reached, rate, "/s", RATE * 0.99, at_least=True)
    yield Row("1,000/s, CPU", cpu / ours.requests * 1e3, "ms", 1.0)
    yield Row("1,000/s, added p50", (ours.p50 - direct.p50) * 1e3, "ms", 1.0)
    yield Row("1,000/s, added p99", (ours.p99 - direct.p99) * 1e3, "ms", 2.0)
    grown = (measure.pss_kb(pid) - before) / 1e3
    yield Row("1,000/s, memory grown", grown, "MB", 10.0)


@contextmanager
def proxy(folder: Path, upstream_port: int) -> Iterator[servers.Server]:
    """Run LiteLLM's proxy."""
    port = servers.free_port()
    config = folder / "litellm.yaml"
    config.write_text(PROXY_CONFIG.format(port=upstream_port), encoding="utf-8")
    settings = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        # Neither side asks for a key.
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    argv = [str(PROXY.absolute()), "--config", str(config), "--port", str(port)]
    with (folder / "litellm.log").open("ab") as log:
        process = subprocess.Popen(
            [*argv, "--host", "127.0.0.1", "--telemetry", "False"],
            env={**os.environ, **settings},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(process, Side(servers.Server(process.pid, port), "bench-model"))
            yield servers.Server(process.pid, port)
        finally:
            process.terminate()
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], side: Side) -> None:
    deadline = time.monotonic() + START_SECONDS
    asked = json.loads(side.plan(1, stream=False).body)
    while time.monotonic() < deadline and process.poll() is None:
        try:
            side.server.ask(PATH, asked)
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise servers.StartError("LiteLLM's proxy did not serve")


def all_rows(folder: Path) -> Iterator[Row]:
    """Every row, one after another."""
    home = folder / "home"
    with servers.module("upstream") as upstream:
        servers.write_home(home, upstream.port, GATEWAY)
        with servers.daemon(home) as (daemon, _), proxy(folder, upstream.port) as peer:
            daemon.spawn_agents("bench", 1)
            sides = (
                Side(upstream, "bench-model"),
                Side(peer, "bench-model"),
                Side(daemon, "service:bench-0"),
                Side(daemon, "bench/bench-model"),
            )
            yield from Faces(*sides).rows()
        with servers.daemon(home) as (daemon, _):
            gateway = Side(daemon, "bench/bench-model")
            yield from steady_rows(sides[0], gateway)


def main() -> int:
    """Measure everything; 1 when a target is missed."""
    if not PROXY.exists():
        print("LiteLLM is not installed; run make bench-peers", file=sys.stderr)
        return 2
    begun = run.begin()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in all_rows(Path(folder)):
            run.tell(begun, row)
            rows.append(row)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
