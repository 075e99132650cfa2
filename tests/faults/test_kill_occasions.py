"""kill -9 at each write around an occasion: it is done once, and delivered once.

The daemon kills itself before or behind its nth write after an occasion was due. The
next one on the home, told nothing, is to have done it: one turn whose answer is kept,
delivered to a receiver that knows by the id what comes twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from tests.plugins.orchestration.background.post_box import PostBox, post_box

from .oracle import Oracle
from .waiting import PATIENCE
from .worlds import CHOICE, client

WRITES = 12
POINTS = [
    (number, side) for number in range(1, WRITES + 1) for side in ("up to", "past")
]
QUICK = [(7, "past")]
"""Between outcome and delivery; (1, "past") is between row and job, (6, "past") between
turn and outcome."""
PRICED = """
[[providers.oracle.models]]
id = "oracle-1"
input_cost_per_1m = 1.0
output_cost_per_1m = 1.0
"""
ANSWER = "a summary"
MANIFEST = 'name = "ringer"\n'
PLUGIN = """
import os
import signal
from functools import partial
from pathlib import Path

from agenthost import NotFound, RouteGroup, ServiceSpec, hookimpl
from agenthost_orchestration.background.background import Background
from agenthost_orchestration.background.errands import (
    Creator, Delivery, Errand, Occasion,
)
from agenthost_orchestration.orchestration import orchestration_of
from agenthost_orchestration.schedules.schedules import Schedules

FOLDER = Path({folder!r})
routes = RouteGroup("ring")


class Bell:
    async def errand(self, host, occasion):
        return Errand(
            Creator("operator", "operator"),
            occasion.payload["agent"],
            "ring",
            delivery=Delivery("webhook", occasion.payload["url"]),
        )

    async def ended(self, host, occasion):
        with (FOLDER / "ended").open("a") as file:
            file.write(occasion.id + "\\n")

    async def pause(self, host, source_id, reason):
        raise NotFound("schedule", source_id)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


class Dying:
    def __init__(self, write):
        self.real, self.count = write, 0

    def write(self, *what):
        armed = FOLDER / "armed"
        number, side = armed.read_text().split(" ", 1) if armed.exists() else (0, "")
        self.count += bool(number)
        here = self.count == int(number) and number
        if here and side == "up to":
            die()
        future = self.real(*what)
        if here:
            future.add_done_callback(die)
        return future


@routes.post("/api/ring", scope="system:admin")
async def ring(call):
    now = call.host.clock.time()
    payload = {{"agent": call.query["agent"], "url": call.query["url"]}}
    one = Occasion("one", "schedule", "noon", "12:00", payload, now, created_at=now)
    await call.host.store.write(partial(Background.write, occasions=[one]))
    orchestration_of(call.host).background.wake()
    return {{}}


# In place of the daemon's own, before it takes up what was left: that may be at once.
for name in ("errand", "ended", "pause"):
    setattr(Schedules, name, getattr(Bell, name))


async def start(host):
    host.store.write = Dying(host.store.write).write


async def stop(host):
    pass


@hookimpl
def register_routes():
    yield routes


@hookimpl
def register_service():
    yield ServiceSpec("dying", start, stop)
"""


def write_plugin(folder: Path) -> dict[str, str]:
    """Write a distribution with source and death; say how it is found."""
    folder.parent.mkdir()
    info = folder / "dying-1.dist-info"
    info.mkdir(parents=True)
    (folder / "dying.py").write_text(PLUGIN.format(folder=str(folder)))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dying\nVersion: 1")
    (info / "entry_points.txt").write_text("[agenthost.plugins]\ndying = dying\n")
    return {
        "PYTHONPATH": str(folder),
        "AGENTHOST_PLUGINS__ENABLE": "plugin:dying",
        "AGENTHOST_BACKGROUND__WEBHOOK_ALLOWED_HOSTS": "127.0.0.1",
    }


async def survive(
    folder: Path, oracle: Oracle, box: PostBox, point: tuple[int, str]
) -> bool:
    """Die at a point and go on; tell whether the daemon died there."""
    home, plugin = folder / "home", folder / "plugin"
    environ = CHOICE | write_plugin(plugin)
    home.mkdir()
    (home / "config.toml").write_text(oracle.config + PRICED, encoding="utf-8")
    box.taken.clear()
    oracle.heard.clear()
    with await asyncio.to_thread(DaemonProcess, home, environ) as first:
        async with client(str(first.http.base_url)) as http:
            made = await http.post("/api/agents", json={"manifest_toml": MANIFEST})
            query = {"agent": made.json()["agent_id"], "url": box.url}
            (plugin / "armed").write_text(f"{point[0]} {point[1]}")
            with suppress(httpx.TransportError):
                await http.post("/api/ring", params=query)
        died = await asyncio.to_thread(_ended, first)
        first.kill()
    (plugin / "armed").unlink()
    with await asyncio.to_thread(DaemonProcess, home, environ) as second:
        async with client(str(second.http.base_url)) as http:
            if (await http.get("/api/occasions/one")).status_code == 404:
                # It died before the row was there: then whoever rang knows of nothing.
                assert point in {(1, "up to")}
                await http.post("/api/ring", params=query)
            one = await _done(http, plugin)
    assert (one["state"], one["delivered"]) == ("done", "done"), (point, one["detail"])
    assert one["text"] == ANSWER, (point, one)
    ids = {headers["webhook-id"] for headers, _ in box.taken}
    assert ids == {"one"}, (point, ids)
    # Only an answer that nobody had on disk is asked for again.
    assert len(oracle.heard) <= 2, point
    assert len(box.taken) <= 2, point
    return died


async def _done(http: httpx.AsyncClient, plugin: Path) -> dict[str, str]:
    """Wait until the source was told of the end."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while True:
        one: dict[str, str] = (await http.get("/api/occasions/one")).json()
        if one["ended_at"] and one["delivered"] and (plugin / "ended").exists():
            return one
        assert loop.time() < deadline, one
        await asyncio.sleep(0.02)


def _ended(daemon: DaemonProcess) -> bool:
    """Tell whether it dies; what is written behind an answer has its time too."""
    try:
        daemon.process.wait(3.0)
    except TimeoutExpired:
        return False
    return True


async def survive_all(folder: Path, points: list[tuple[int, str]]) -> int:
    """Die at each point in turn; count the deaths."""
    deaths = 0
    async with Oracle() as oracle, post_box() as box:
        for number, point in enumerate(points):
            deaths += await survive(folder / str(number), oracle, box, point)
    return deaths


@pytest.mark.conformance
async def test_kills_around_an_occasion_do_it_once(tmp_path: Path) -> None:
    assert await survive_all(tmp_path, QUICK) == len(QUICK)


@pytest.mark.faults
async def test_kills_at_each_write_around_an_occasion_do_it_once(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    deaths = await survive_all(tmp_path, POINTS)
    assert deaths == len(POINTS)
    figures(f"{deaths} kills around an occasion: 0 lost, 0 done twice (limit 0)")
