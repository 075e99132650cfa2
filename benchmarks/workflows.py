"""What a step of a workflow costs beside a plain message, which is the same turn."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from functools import partial

from . import load, measure, servers
from .figures import Row

STEPS = 20
"""Below the compaction threshold, so that a turn is one call of the model."""
RUNS = 15
"""In one round."""
ROUNDS = 7


def workflow_rows(daemon: servers.Server) -> Iterator[Row]:
    """CPU of a step, each run's share of its start and end included, one client."""
    yield _row(daemon, "sequential", "workflow step, CPU")
    yield _row(daemon, "fan_out", "workflow branch, CPU")


def _row(daemon: servers.Server, mode: str, name: str) -> Row:
    agents = daemon.spawn_agents(mode.replace("_", "-"), 1 + RUNS * (ROUNDS + 1))
    step = {"agent_id": agents[0], "mode": mode, "prompt": "hello {{input}}"}
    made = daemon.ask("/api/workflows", {"name": mode, "steps": [step] * STEPS})
    runs = load.Plan(
        daemon.port,
        (f"/api/workflows/{made['workflow_id']}/run",),
        RUNS,
        1,
        json.dumps({"input": "hello"}),
    )
    messages = load.Plan(
        daemon.port,
        tuple(f"/api/agents/{agent}/message" for agent in agents[1:]),
        RUNS * STEPS,
        1,
        json.dumps({"message": "hello"}),
    )
    spent: dict[load.Plan, list[float]] = {runs: [], messages: []}
    for number in range(ROUNDS + 1):
        for plan, costs in spent.items():
            seconds = measure.cpu_of(daemon.pid, partial(load.run, plan))
            # The first round warms up.
            if number:
                costs.append(seconds / (RUNS * STEPS) * 1e6)
    ours, yardstick = (statistics.median(costs) for costs in spent.values())
    return Row(name, ours, "us", 3.0, yardstick)
