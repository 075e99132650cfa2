"""kill -9 at each write around an approval: it is given once, and acted on once.

The daemon kills itself before or behind its nth write after a message. The next one on
the home is asked again with the same key, and a person answers again where they must.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from subprocess import TimeoutExpired

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess
from agenthost.testing.simulators import Heard, ScriptedCall, Turn

from .oracle import Oracle, answer_to
from .waiting import PATIENCE
from .worlds import CHOICE, client

WRITES = 10
POINTS = [
    (number, side) for number in range(1, WRITES + 1) for side in ("up to", "past")
]
QUICK = [(4, "past"), (7, "up to")]
MANIFEST = 'name = "buyer"\n[capabilities]\ntools = ["pay_sum"]\n'
PLUGIN = """
import os
import signal
from pathlib import Path

from agenthost import (
    ALLOW, Ask, Effect, Guard, Question, SecuritySystem, ServiceSpec, ToolResult,
    ToolSpec, hookimpl,
)
from pydantic import BaseModel

FOLDER = Path({folder!r})


class Sum(BaseModel):
    sum: int


async def pay(context, call):
    with (FOLDER / "effects").open("a") as file:
        file.write("paid\\n")
    return ToolResult("paid")


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


async def start(host):
    host.store.write = Dying(host.store.write).write


async def stop(host):
    pass


def guard(case):
    return Ask(Question("Pay?")) if case.tool == "pay_sum" else ALLOW


@hookimpl
def register_tool():
    yield ToolSpec("pay_sum", "Pay.", Sum, Effect.EXTERNAL, pay)


@hookimpl
def register_service():
    yield ServiceSpec("dying", start, stop)


@hookimpl
def security_system():
    return SecuritySystem("caution", {{Guard.TOOL_CALL: guard}}, lambda: None)
"""


class PayingOracle(Oracle):
    """Pays once, then answers."""

    def turn(self, heard: Heard) -> Turn:
        """What is answered."""
        if heard.body["messages"][-1]["role"] == "tool":
            return Turn(answer_to(heard.said[-1]))
        return Turn(calls=(ScriptedCall("pay_sum", json.dumps({"sum": 1}), "call"),))


def write_plugin(folder: Path) -> dict[str, str]:
    """Write a distribution with tool, guard and death; say how it is found."""
    folder.parent.mkdir()
    info = folder / "dying-1.dist-info"
    info.mkdir(parents=True)
    (folder / "dying.py").write_text(PLUGIN.format(folder=str(folder)))
    (folder / "effects").touch()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dying\nVersion: 1")
    (info / "entry_points.txt").write_text("[agenthost.plugins]\ndying = dying\n")
    return {"PYTHONPATH": str(folder), "AGENTHOST_PLUGINS__ENABLE": "plugin:dying"}


async def buy(http: httpx.AsyncClient, agent: str) -> str:
    """Ask with one key, say yes where a person is asked, until there is an answer."""
    path, key = f"/api/agents/{agent}/message", {"Idempotency-Key": "k"}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while loop.time() < deadline:
        answer = await http.post(path, json={"message": "buy it"}, headers=key)
        body = answer.json()
        if answer.status_code == 200:
            return str(body["response"])
        assert answer.status_code == 202, answer.text
        approval = f"/api/approvals/{body['approval_id']}/approve"
        said = await http.post(approval, json={})
        assert said.status_code in {200, 409}, said.text
    raise AssertionError("the turn never ended")


def rows(home: Path, query: str) -> list[tuple[str, ...]]:
    """Read the database of a home."""
    with closing(sqlite3.connect(home / "data/agenthost.db")) as connection:
        return connection.execute(query).fetchall()


async def survive(folder: Path, oracle: Oracle, point: tuple[int, str]) -> bool:
    """Die at a point and go on; tell whether the daemon died there."""
    home, plugin = folder / "home", folder / "plugin"
    environ = CHOICE | write_plugin(plugin)
    home.mkdir()
    (home / "config.toml").write_text(oracle.config, encoding="utf-8")
    with await asyncio.to_thread(DaemonProcess, home, environ) as first:
        async with client(str(first.http.base_url)) as http:
            made = await http.post("/api/agents", json={"manifest_toml": MANIFEST})
            agent = made.json()["agent_id"]
            (plugin / "armed").write_text(f"{point[0]} {point[1]}")
            with suppress(httpx.TransportError):
                await buy(http, agent)
        died = await asyncio.to_thread(_ended, first)
        first.kill()
    (plugin / "armed").unlink()
    with await asyncio.to_thread(DaemonProcess, home, environ) as second:
        async with client(str(second.http.base_url)) as http:
            assert await buy(http, agent) == answer_to("buy it"), point
            shown = (await http.get("/api/approvals")).json()["approvals"]
            assert [each["state"] for each in shown] == ["approved"], (point, shown)
            await _settled(home)
    ((state,),) = rows(home, "select state from tool_calls")
    paid = (plugin / "effects").read_text().count("paid")
    # Only what had begun may have happened or not: then the model is told so.
    assert paid == 1 or (paid == 0 and state == "unknown"), (point, paid, state)
    assert rows(home, "select state from turns") == [("done",)], point
    return died


def _ended(daemon: DaemonProcess) -> bool:
    """Tell whether it dies; what is written behind an answer has its time too."""
    try:
        daemon.process.wait(2.0)
    except TimeoutExpired:
        return False
    return True


async def _settled(home: Path) -> None:
    """Wait until nothing is left to do of any approval."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while rows(home, "select id from approvals where carried = 0"):
        assert loop.time() < deadline, "an approval is never settled"
        await asyncio.sleep(0.01)


async def survive_all(folder: Path, points: list[tuple[int, str]]) -> int:
    """Die at each point in turn; count the deaths."""
    deaths = 0
    async with PayingOracle() as oracle:
        for number, point in enumerate(points):
            deaths += await survive(folder / str(number), oracle, point)
    return deaths


@pytest.mark.conformance
async def test_kills_around_an_approval_pay_once(tmp_path: Path) -> None:
    assert await survive_all(tmp_path, QUICK) == len(QUICK)


@pytest.mark.faults
async def test_kills_at_each_write_around_an_approval_pay_once(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    deaths = await survive_all(tmp_path, POINTS)
    assert deaths == len(POINTS)
    figures(f"{deaths} kills around an approval: 0 lost, 0 paid twice (limit 0)")
