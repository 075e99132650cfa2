"""What every channel that there is costs, configured and without its secrets."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

from . import measure, servers
from .figures import Row

ROUNDS = 9
SETTLED = 4.0
"""Seconds after which a daemon has looked at all of them."""
WATCHED = 10.0
SECTION = '[channels.{name}]\nagent = "bench-0"\n'


def channel_rows(upstream_port: int) -> Iterator[Row]:
    """A daemon with an agent that has answered, without channels and with all."""
    found = entry_points(group="agenthost.channels")
    every = "".join(SECTION.format(name=each.name) for each in found)
    with tempfile.TemporaryDirectory() as folder:
        homes = Path(folder, "none"), Path(folder, "all")
        for home, more in zip(homes, ("", every), strict=True):
            servers.write_home(home, upstream_port, more)
        # The first start of a home makes its tables.
        for home in homes:
            with servers.daemon(home) as (daemon, _):
                daemon.spawn_agents("bench", 1)
        starts = [_starts(home) for _ in range(ROUNDS) for home in homes]
        # What else the machine does only adds, and more than channels do.
        without, all_ = (min(starts[n::2]) for n in (0, 1))
        yield Row("channels without secrets, start", all_ - without, "ms", 20)
        (bare, idle), (ours, idle_too) = (_settled(home) for home in homes)
    yield Row("channels without secrets, PSS", ours - bare, "MB", 4)
    yield Row("channels without secrets, idle", idle_too - idle, "% of a core", 1)


def _starts(home: Path) -> float:
    """CPU milliseconds until the first answer."""
    with servers.daemon(home) as (daemon, _):
        return measure.tree_cpu(daemon.pid) * 1e3


def _settled(home: Path) -> tuple[float, float]:
    """Megabytes, and percent of a core, after an agent has answered."""
    with servers.daemon(home) as (daemon, _):
        (agent,) = [each["id"] for each in daemon.ask("/api/agents")]
        daemon.ask(f"/api/agents/{agent}/message", {"message": "hello"})
        time.sleep(SETTLED)
        seconds = measure.cpu_of(daemon.pid, lambda: time.sleep(WATCHED))
        return measure.pss_kb(daemon.pid) / 1e3, seconds / WATCHED * 100
