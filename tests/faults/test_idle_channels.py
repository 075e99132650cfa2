"""What a daemon takes that is connected to every service while nobody says anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import measure

from .test_kill_channels import MANIFEST, connected, crowd

pytestmark = pytest.mark.faults

REST = ("irc", "mumble", "ntfy", "bluesky")
"""Those that the crowd is not at."""
HURRIED = "poll_seconds = 0.05\n"
"""Bluesky's stage looks often, so that its tests need not wait."""
SETTLED = 20.0
WATCHED = 20.0
PERCENT = 1.0


async def test_all_channels_connected_take_little(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(crowd(tmp_path / "home", 40))
        for name in REST:
            stages = import_module(f"agenthost_channels.testing.stages.{name}")
            world.add(await stack.enter_async_context(stages.opened()))
        assert HURRIED in world.config
        world.config = world.config.replace(HURRIED, "")
        world.furnish()
        daemon = await world.live()
        try:
            made = daemon.http.post("/api/agents", json={"manifest_toml": MANIFEST})
            assert made.status_code == 201, made.text
            await asyncio.to_thread(connected, daemon)
            rows = daemon.http.get("/api/channels").json()["channels"]
            assert sum(row["connected"] for row in rows) == 13
            await asyncio.sleep(SETTLED)
            watch = partial(time.sleep, WATCHED)
            pid = daemon.process.pid
            seconds = await asyncio.to_thread(measure.cpu_of, pid, watch)
        finally:
            daemon.terminate()
            daemon.__exit__(None, None, None)
    percent = seconds / WATCHED * 100
    figures(f"13 channels connected: target {PERCENT} % of a core, {percent:.2f}")
    assert percent <= PERCENT
