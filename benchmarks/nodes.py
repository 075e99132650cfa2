"""Two daemons on one PostgreSQL beside one of them alone.

The upstream takes 200 ms for an answer and each daemon has four places for turns, so
that places are what is short: the row shows whether lines, leases and the one writer of
the database hold up the second daemon.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.plugins.cluster.server import programs, running

from . import load, servers
from .figures import Row

LATENCY = "0.2"
PLACES = 4
CLIENTS = 2 * PLACES
"""Of each daemon: when one answer is done the next turn waits already."""
REQUESTS = 10 * CLIENTS
"""Of each daemon in one round."""
ROUNDS = 3
KNOWN_WITHIN = 10.0
CONFIG = """
node = "{node}"

[storage]
url = "{url}"

[turns]
max_concurrent = {places}
"""


def node_rows() -> Iterator[Row]:
    """Turns a second of both, and of one with as many clients."""
    if programs() is None:
        print("no PostgreSQL here: the row of two nodes is left out", file=sys.stderr)
        return
    with ExitStack() as stack:
        upstream = stack.enter_context(servers.module("upstream", "3", LATENCY))
        url = stack.enter_context(running()).database()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nodes = []
        for name in ("a", "b"):
            home = folder / name
            servers.write_home(home, upstream.port)
            _join(home, name, url)
            nodes.append(stack.enter_context(servers.daemon(home))[0])
        yield _row(nodes)


def _join(home: Path, name: str, url: str) -> None:
    config = home / "config.toml"
    own = CONFIG.format(node=name, url=url, places=PLACES)
    top, _, tables = own.partition("[storage]")
    before = config.read_text(encoding="utf-8")
    config.write_text(f"{top}\n{before}\n[storage]{tables}", encoding="utf-8")


def _row(nodes: Sequence[servers.Server]) -> Row:
    agents = nodes[0].spawn_agents("node", 2 * CLIENTS)
    for node in nodes[1:]:
        _await_known(node, agents[-1])
    plans = [
        load.Plan(
            node.port,
            tuple(f"/api/agents/{agent}/message" for agent in agents[at::2]),
            REQUESTS,
            CLIENTS,
            json.dumps({"message": "hello"}),
        )
        for at, node in enumerate(nodes)
    ]
    alone, together = [], []
    for number in range(ROUNDS + 1):
        pace = _per_second(plans[:1]), _per_second(plans)
        # The first round warms up.
        if number:
            alone.append(pace[0])
            together.append(pace[1])
    name = "turns on two nodes, 200 ms upstream"
    one, both = statistics.median(alone), statistics.median(together)
    return Row(name, both, "/s", 1.6, one, at_least=True)


def _per_second(plans: Sequence[load.Plan]) -> float:
    with ThreadPoolExecutor(len(plans)) as pool:
        outcomes = list(pool.map(load.run, plans))
    return sum(each.requests for each in outcomes) / max(
        each.seconds for each in outcomes
    )


def _await_known(node: servers.Server, agent: str) -> None:
    deadline = time.monotonic() + KNOWN_WITHIN
    while True:
        try:
            node.ask(f"/api/agents/{agent}")
        except servers.StartError:
            if time.monotonic() > deadline:
                raise
        else:
            return
