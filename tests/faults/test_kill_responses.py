"""kill -9 at each write of a response in the background: none is lost, none doubled.

The daemon kills itself before or behind its nth write after it was asked. The next one
on the home is asked again with the same key, as a client does that got no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from .oracle import answer_to
from .test_kill_while_asking import MANIFEST, PayingOracle, _ended, rows, write_plugin
from .waiting import PATIENCE
from .worlds import CHOICE, client

WRITES = 12
POINTS = [
    (number, side) for number in range(1, WRITES + 1) for side in ("up to", "past")
]
QUICK = [(2, "up to"), (6, "past")]
ASKS = 'Ask(Question("Pay?")) if case.tool == "pay_sum" else ALLOW'
PATH = "/v1/responses"


async def made(http: httpx.AsyncClient) -> dict[str, Any]:
    """Ask with one key until the response has ended."""
    body = {"model": "buyer", "input": "buy it", "background": True}
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while asyncio.get_running_loop().time() < deadline:
        answer = await http.post(PATH, json=body, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 200, answer.text
        if answer.json()["status"] not in {"queued", "in_progress"}:
            return dict(answer.json())
        await asyncio.sleep(0.01)
    raise AssertionError("the response never ended")


async def survive(folder: Path, oracle: PayingOracle, point: tuple[int, str]) -> bool:
    """Die at a point and go on; tell whether the daemon died there."""
    home, plugin = folder / "home", folder / "plugin"
    environ = CHOICE | write_plugin(plugin)
    code = plugin / "dying.py"
    code.write_text(code.read_text().replace(ASKS, "ALLOW"))
    home.mkdir()
    (home / "config.toml").write_text(oracle.config, encoding="utf-8")
    with await asyncio.to_thread(DaemonProcess, home, environ) as first:
        async with client(str(first.http.base_url)) as http:
            await http.post("/api/agents", json={"manifest_toml": MANIFEST})
            (plugin / "armed").write_text(f"{point[0]} {point[1]}")
            with suppress(httpx.TransportError):
                await made(http)
        died = await asyncio.to_thread(_ended, first)
        first.kill()
    (plugin / "armed").unlink()
    with await asyncio.to_thread(DaemonProcess, home, environ) as second:
        async with client(str(second.http.base_url)) as http:
            response = await made(http)
            again = (await http.get(f"{PATH}/{response['id']}")).json()
    assert response == again, point
    assert response["status"] == "completed", (point, response)
    (item,) = response["output"]
    assert item["content"][0]["text"] == answer_to("buy it"), point
    ((state,),) = rows(home, "select state from tool_calls")
    paid = (plugin / "effects").read_text().count("paid")
    # Only what had begun may have happened or not: then the model is told so.
    assert paid == 1 or (paid == 0 and state == "unknown"), (point, paid, state)
    assert rows(home, "select state from turns") == [("done",)], point
    assert rows(home, "select status from openai_responses") == [("completed",)]
    return died


async def survive_all(folder: Path, points: list[tuple[int, str]]) -> int:
    """Die at each point in turn; count the deaths."""
    deaths = 0
    async with PayingOracle() as oracle:
        for number, point in enumerate(points):
            deaths += await survive(folder / str(number), oracle, point)
    return deaths


@pytest.mark.conformance
async def test_a_response_outlives_two_kills(tmp_path: Path) -> None:
    assert await survive_all(tmp_path, QUICK) == len(QUICK)


@pytest.mark.faults
async def test_a_response_outlives_kills_at_each_write(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    deaths = await survive_all(tmp_path, POINTS)
    assert deaths == len(POINTS)
    figures(f"{deaths} kills around a response: 0 lost, 0 paid twice (limit 0)")
