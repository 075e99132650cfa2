"""kill -9 at each write around a question about money: one yes is one raise.

The daemon kills itself before or behind its nth write after a run was asked for that
has to ask a person for more. The next one on the home goes on with it, and a person
answers where nobody had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from .oracle import Oracle
from .test_kill_occasions import PRICED
from .test_kill_while_asking import _ended, _settled, rows, write_plugin
from .waiting import PATIENCE
from .worlds import CHOICE, client

WRITES = 14
POINTS = [
    (number, side) for number in range(1, WRITES + 1) for side in ("up to", "past")
]
QUICK = [(5, "past"), (8, "up to")]
MANIFEST = 'name = "writer"\n[model]\nmax_tokens = 1000\n'
LIMIT = 0.0003
"""Less than the dearest first call, which fits into twice as much."""
FLOW = {
    "name": "flow",
    "max_cost_usd": LIMIT,
    "steps": [
        {"name": name, "agent_name": "writer", "prompt": "say {{input}}"}
        for name in ("one", "two")
    ],
}


async def go_on(http: httpx.AsyncClient, flow: str) -> str:
    """Ask for the run with one key, say yes where a person is asked; give its state."""
    loop = asyncio.get_running_loop()
    deadline, key = loop.time() + PATIENCE, {"Idempotency-Key": "k"}
    path = f"/api/workflows/{flow}/run?wait=false"
    told = await http.post(path, json={"input": "x"}, headers=key)
    run = f"/api/workflows/runs/{told.json()['run_id']}"
    while loop.time() < deadline:
        shown = (await http.get(run)).json()
        if shown["state"] not in {"Pending", "Running"}:
            return f"{shown['state']} {shown['error'] or ''}".strip()
        found = await http.get("/api/approvals", params={"state": "pending"})
        for each in found.json()["approvals"]:
            said = await http.post(f"/api/approvals/{each['id']}/approve", json={})
            assert said.status_code in {200, 409}, said.text
        await asyncio.sleep(0.01)
    raise AssertionError("the run never ended")


async def survive(folder: Path, oracle: Oracle, point: tuple[int, str]) -> bool:
    """Die at a point and go on; tell whether the daemon died there."""
    home, plugin = folder / "home", folder / "plugin"
    environ = CHOICE | write_plugin(plugin)
    home.mkdir()
    (home / "config.toml").write_text(oracle.config + PRICED, encoding="utf-8")
    with await asyncio.to_thread(DaemonProcess, home, environ) as first:
        async with client(str(first.http.base_url)) as http:
            await http.post("/api/agents", json={"manifest_toml": MANIFEST})
            made = await http.post("/api/workflows", json=FLOW)
            flow = made.json()["workflow_id"]
            (plugin / "armed").write_text(f"{point[0]} {point[1]}")
            with suppress(httpx.TransportError):
                await go_on(http, flow)
        died = await asyncio.to_thread(_ended, first)
        first.kill()
    (plugin / "armed").unlink()
    with await asyncio.to_thread(DaemonProcess, home, environ) as second:
        async with client(str(second.http.base_url)) as http:
            assert await go_on(http, flow) == "Completed", point
            shown = (await http.get("/api/approvals")).json()["approvals"]
            assert [each["state"] for each in shown] == ["approved"], (point, shown)
            assert shown[0]["expense"]["more_usd"] == LIMIT, (point, shown)
            await _settled(home)
    done = rows(
        home, "select count(*) from workflow_run_steps where output is not null"
    )
    assert str(done) == "[(2,)]", (point, done)
    return died


async def survive_all(folder: Path, points: list[tuple[int, str]]) -> int:
    """Die at each point in turn; count the deaths."""
    deaths = 0
    async with Oracle() as oracle:
        for number, point in enumerate(points):
            deaths += await survive(folder / str(number), oracle, point)
    return deaths


@pytest.mark.conformance
async def test_kills_around_a_question_about_money_raise_once(tmp_path: Path) -> None:
    assert await survive_all(tmp_path, QUICK) == len(QUICK)


@pytest.mark.faults
async def test_kills_at_each_write_around_a_question_about_money_raise_once(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    deaths = await survive_all(tmp_path, POINTS)
    assert deaths == len(POINTS)
    figures(f"{deaths} kills around a question about money: 0 lost, 0 raised twice")
