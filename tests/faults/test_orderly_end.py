"""SIGTERM while everybody is at work: what can end ends, the rest is resumed.

Fifty turns over three faces, each of an agent of its own, and a workflow's run. Half of
their models go on once the daemon has been asked to end; the other half stand still for
good.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from .asking import Attempt, Way
from .oracle import Manner, Oracle, Scene, answer_to
from .waiting import soon
from .worlds import CHOICE, client

WAYS = [Way.BLOCKING] * 10 + [Way.SSE] * 20 + [Way.SOCKET] * 20
LONGEST_END = 30.0
AT_ONCE = 2.0
MANIFEST = 'name = "agent{number}"\n[capabilities]\ntools = []\n'
TURNS = "\n[turns]\nmax_concurrent = 64\n"
STATES = "SELECT state, count(*) FROM turns GROUP BY state"
STEP = "the step of a workflow"
LEFT = (
    "SELECT t.id, t.agent_id FROM turns t JOIN sessions s ON s.id = t.session_id "
    "WHERE t.state = 'interrupted' AND s.ephemeral = 0"
)


class Crowd:
    """Clients of one daemon, each asking an agent of its own."""

    def __init__(self, oracle: Oracle, ways: list[Way]) -> None:
        self.oracle = oracle
        self.asked = [(f"question {n}", Attempt(way)) for n, way in enumerate(ways)]
        for text, _ in self.asked:
            oracle.scenes[text] = Scene(Manner.PAUSES)

    async def ask(self, http: httpx.AsyncClient) -> None:
        """Have all models stand still among their words."""
        for number, (text, attempt) in enumerate(self.asked):
            manifest = {"manifest_toml": MANIFEST.format(number=number)}
            made = await http.post("/api/agents", json=manifest)
            attempt.go(http, made.json()["agent_id"], text)
        scenes = self.oracle.scenes.values()
        await soon(lambda: all(s.waiting for s in scenes), "all models stand still")

    def release(self, texts: list[str]) -> None:
        """Let these models speak on."""
        for text in texts:
            self.oracle.scenes[text].release()

    async def ended(self) -> None:
        """Wait until no client waits any more."""
        tasks = [attempt.task for _, attempt in self.asked if attempt.task]
        await asyncio.wait_for(asyncio.gather(*tasks), LONGEST_END)


def rows(home: Path, query: str) -> list[tuple[Any, Any]]:
    database = f"file:{home / 'data/agenthost.db'}?mode=ro"
    with closing(sqlite3.connect(database, uri=True)) as connection:
        return connection.execute(query).fetchall()


def children_of(pid: int) -> list[str]:
    """The processes that have it, or had it, for a parent."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return found.read_text().split() if found.exists() else []


def is_alive(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_sigterm_waits_for_turns_that_can_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with Oracle() as oracle:
        (home / "config.toml").write_text(oracle.config)
        crowd = Crowd(oracle, [Way.BLOCKING, Way.SSE, Way.SOCKET])
        process = await asyncio.to_thread(DaemonProcess, home, CHOICE)
        with process:
            async with client(str(process.http.base_url)) as http:
                await crowd.ask(http)
                process.process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.1)
                assert process.process.poll() is None
                crowd.release([text for text, _ in crowd.asked])
                code = await asyncio.to_thread(process.process.wait, LONGEST_END)
                await crowd.ended()
        assert code == 0
        assert all(attempt.outcome.done for _, attempt in crowd.asked)
        assert dict(rows(home, STATES)) == {"done": 3}


@pytest.mark.faults
async def test_a_sigterm_ends_what_can_end_and_keeps_the_rest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with Oracle() as oracle:
        (home / "config.toml").write_text(oracle.config + TURNS)
        crowd = Crowd(oracle, WAYS)
        texts = [text for text, _ in crowd.asked]
        quick, stuck = texts[::2], texts[1::2]
        process = await asyncio.to_thread(DaemonProcess, home, CHOICE)
        with process:
            async with client(str(process.http.base_url)) as http:
                await crowd.ask(http)
                run_id = await _workflow(http, oracle)
                children = children_of(process.process.pid)
                begun = time.monotonic()
                process.process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.2)
                refused = await http.get("/api/agents")
                assert refused.status_code == 503
                assert (await http.get("/api/health")).status_code == 503
                crowd.release(quick)
                code = await asyncio.to_thread(process.process.wait, LONGEST_END)
                assert code == 0
                assert time.monotonic() - begun <= LONGEST_END
                await crowd.ended()
        for text, attempt in crowd.asked:
            outcome = attempt.outcome
            if text in quick:
                assert outcome.done, f"{attempt.way} {text}: {outcome}"
                assert outcome.text == answer_to(text)
            else:
                assert outcome.code == "interrupted", f"{attempt.way}: {outcome}"
        assert dict(rows(home, STATES)) == {"done": 25, "interrupted": 26}
        assert not list(filter(is_alive, children))
        oracle.scenes[STEP] = Scene(Manner.SAYS)
        await _all_go_on(home, oracle, stuck, run_id)


async def _workflow(http: httpx.AsyncClient, oracle: Oracle) -> str:
    """Have a run stand still in its one step."""
    oracle.scenes[STEP] = Scene(Manner.PAUSES)
    manifest = {"manifest_toml": MANIFEST.format(number="-of-a-workflow")}
    await http.post("/api/agents", json=manifest)
    steps = [{"agent_name": "agent-of-a-workflow", "prompt": STEP}]
    made = await http.post("/api/workflows", json={"name": "flow", "steps": steps})
    path = f"/api/workflows/{made.json()['workflow_id']}/run?wait=false"
    run = await http.post(path, json={"input": ""})
    assert run.status_code == 202
    await soon(lambda: oracle.scenes[STEP].waiting, "the step stands still")
    return str(run.json()["run_id"])


async def _run_ends(http: httpx.AsyncClient, run_id: str) -> None:
    async with asyncio.timeout(LONGEST_END):
        while True:
            run = (await http.get(f"/api/workflows/runs/{run_id}")).json()
            if run["state"] != "Running":
                break
            await asyncio.sleep(0.05)
    assert (run["state"], run["output"]) == ("Completed", answer_to(STEP))


async def _all_go_on(home: Path, oracle: Oracle, stuck: list[str], run_id: str) -> None:
    """What was kept has its answer after the next start, and once."""
    for text in stuck:
        oracle.scenes[text] = Scene(Manner.SAYS)
    left = rows(home, LEFT)
    process = await asyncio.to_thread(DaemonProcess, home, CHOICE)
    with process:
        async with client(str(process.http.base_url)) as http:
            await _run_ends(http, run_id)
            answers = set()
            for turn_id, agent_id in left:
                path = f"/api/agents/{agent_id}/turns/{turn_id}/resume"
                answer = await http.post(path)
                assert answer.status_code == 200, answer.text
                answers.add(answer.json()["response"])
        assert process.terminate() == 0
    assert answers == set(map(answer_to, stuck))
    assert dict(rows(home, STATES)) == {"done": 50}


@pytest.mark.faults
async def test_a_second_sigterm_ends_it_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with Oracle() as oracle:
        (home / "config.toml").write_text(oracle.config)
        crowd = Crowd(oracle, [Way.BLOCKING, Way.SSE, Way.SOCKET])
        process = await asyncio.to_thread(DaemonProcess, home, CHOICE)
        with process:
            async with client(str(process.http.base_url)) as http:
                await crowd.ask(http)
                process.process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.5)
                assert process.process.poll() is None
                begun = time.monotonic()
                process.process.send_signal(signal.SIGTERM)
                await asyncio.to_thread(process.process.wait, LONGEST_END)
                assert time.monotonic() - begun <= AT_ONCE
                await crowd.ended()
        process = await asyncio.to_thread(DaemonProcess, home, CHOICE)
        with process:
            assert process.http.get("/api/health").json()["status"] == "ok"
            assert dict(rows(home, STATES)) == {"interrupted": 3}
            assert process.terminate() == 0
