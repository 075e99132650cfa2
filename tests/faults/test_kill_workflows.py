"""kill -9 at each write of a workflow's run: it goes on, and asks nothing twice.

The daemon kills itself before or behind its nth write after a run was asked for. The
next one on the home goes on with the run. What had an answer by then is not asked of
the model again; what was under way is, at most once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess
from agenthost.testing.simulators import Heard, Turn
from agenthost_orchestration.workflows.calls import turn_id_of
from agenthost_orchestration.workflows.walk import Asked

from .oracle import Manner, Oracle, Scene, answer_to
from .waiting import PATIENCE
from .worlds import CHOICE, client

WRITES = range(1, 13)
SIDES = ("up to", "past")
REFUSED = "refuse"
BETWEEN = "\n\n---\n\n"
PLUGIN = """
import os
import signal
from pathlib import Path

from agenthost import ServiceSpec, hookimpl

FOLDER = Path({folder!r})


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


@hookimpl
def register_service():
    yield ServiceSpec("dying", start, stop)
"""


@dataclass(frozen=True)
class Flow:
    """A workflow, and what a run of it asks and comes to when given a word."""

    name: str
    steps: tuple[dict[str, Any], ...]
    asks: Callable[[str], dict[str, str]]
    """The question of each call, by the key of the call."""
    ends: Callable[[str], tuple[int, str]]
    """Status, and output or error."""


def _sequential(word: str) -> dict[str, str]:
    return {"0:0:1": f"one {word}", "1:0:1": f"two {answer_to(f'one {word}')}"}


def _fan_out(word: str) -> dict[str, str]:
    return {f"{index}:0:1": f"{name} {word}" for index, name in enumerate("abc")}


def _conditional(word: str) -> dict[str, str]:
    first = answer_to(f"look {word}")
    return {"0:0:1": f"look {word}", "2:0:1": f"then {first}"}


def _loop(word: str) -> dict[str, str]:
    said, asks = word, {}
    for number in (1, 2, 3):
        asks[f"0:{number}:1"] = f"again {said}"
        said = answer_to(f"again {said}")
    return asks


def _errors(word: str) -> dict[str, str]:
    skipped, failed = f"{REFUSED} skip {word}", f"{REFUSED} fail {word}"
    return {"0:0:1": skipped, "1:0:1": failed, "1:0:2": failed}


def _last(asks: Callable[[str], dict[str, str]]) -> Callable[[str], tuple[int, str]]:
    return lambda word: (200, answer_to([*asks(word).values()][-1]))


def _joined(word: str) -> tuple[int, str]:
    return 200, BETWEEN.join(answer_to(each) for each in _fan_out(word).values())


def _failed(_: str) -> tuple[int, str]:
    return 500, "Step 'fail' failed after 1 retries: oracle: scripted"


def _step(name: str, prompt: str, **facts: Any) -> dict[str, Any]:
    return {"name": name, "prompt": prompt, "agent_name": "tester", **facts}


FLOWS = (
    Flow(
        "sequential",
        (_step("one", "one {{input}}"), _step("two", "two {{input}}")),
        _sequential,
        _last(_sequential),
    ),
    Flow(
        "fan_out",
        (
            *(_step(each, f"{each} {{{{input}}}}", mode="fan_out") for each in "abc"),
            {"name": "all", "mode": "collect"},
        ),
        _fan_out,
        _joined,
    ),
    Flow(
        "conditional",
        (
            _step("look", "look {{input}}"),
            _step("never", "never", mode="conditional", condition="nowhere"),
            _step("then", "then {{input}}", mode="conditional", condition="ANS"),
        ),
        _conditional,
        _last(_conditional),
    ),
    Flow(
        "loop",
        (
            _step(
                "again",
                "again {{input}}",
                mode="loop",
                until="ans:again ans:again ans:again",
            ),
        ),
        _loop,
        _last(_loop),
    ),
    Flow(
        "errors",
        (
            _step("skip", f"{REFUSED} skip {{{{input}}}}", error_mode="skip"),
            _step(
                "fail",
                f"{REFUSED} fail {{{{input}}}}",
                error_mode="retry",
                max_retries=1,
            ),
        ),
        _errors,
        _failed,
    ),
)
Point = tuple[Flow, int, str]
POINTS = [(flow, number, side) for flow in FLOWS for number in WRITES for side in SIDES]
QUICK = [(FLOWS[1], 8, "past")]


class Upstream(Oracle):
    """Answers whatever it is asked, and refuses what begins so."""

    def turn(self, heard: Heard) -> Turn:
        """What is answered."""
        return Turn(answer_to(heard.said[-1]))

    def expect(self, questions: dict[str, str]) -> None:
        """Know which of these are refused."""
        for each in questions.values():
            if each.startswith(REFUSED):
                self.scenes[each] = Scene(Manner.REFUSES)


class Home:
    """A home on which one daemon after another dies."""

    def __init__(self, folder: Path, upstream: Upstream) -> None:
        self.folder, self.upstream = folder, upstream
        self.home, self.plugin = folder / "home", folder / "plugin"
        self.environ = CHOICE | self._write_plugin()
        self.home.mkdir()
        (self.home / "config.toml").write_text(upstream.config, encoding="utf-8")
        self.workflows: dict[str, str] = {}
        self.daemon: DaemonProcess | None = None

    def _write_plugin(self) -> dict[str, str]:
        info = self.plugin / "dying-1.dist-info"
        info.mkdir(parents=True)
        (self.plugin / "dying.py").write_text(PLUGIN.format(folder=str(self.plugin)))
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dying\nVersion: 1")
        (info / "entry_points.txt").write_text("[agenthost.plugins]\ndying = dying\n")
        found = {"PYTHONPATH": str(self.plugin)}
        return found | {"AGENTHOST_PLUGINS__ENABLE": "plugin:dying"}

    async def start(self) -> httpx.AsyncClient:
        """Start the next daemon."""
        self.daemon = await asyncio.to_thread(DaemonProcess, self.home, self.environ)
        return client(str(self.daemon.http.base_url))

    async def prepare(self, http: httpx.AsyncClient) -> None:
        """Make the agent and the workflows."""
        made = await http.post(
            "/api/agents", json={"manifest_toml": 'name = "tester"\n'}
        )
        assert made.status_code == 201, made.text
        for flow in FLOWS:
            body = {"name": flow.name, "steps": flow.steps}
            made = await http.post("/api/workflows", json=body)
            assert made.status_code == 201, made.text
            self.workflows[flow.name] = made.json()["workflow_id"]

    def arm(self, number: int, side: str) -> None:
        """Have the daemon die at this write from now on."""
        (self.plugin / "armed").write_text(f"{number} {side}")

    async def end(self) -> bool:
        """Wait until the daemon has died; whether it did so by itself."""
        assert self.daemon is not None
        with self.daemon as daemon:
            died = await asyncio.to_thread(_ended, daemon)
            daemon.kill()
        (self.plugin / "armed").unlink(missing_ok=True)
        return died

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        """Read the database."""
        with closing(sqlite3.connect(self.home / "data/agenthost.db")) as connection:
            return connection.execute(query, values).fetchall()

    def answered(self, word: str) -> set[str]:
        """Tell which calls of the run had their end on disk, by their keys."""
        asked = "SELECT id FROM workflow_runs WHERE input = ?"
        done = {
            turn
            for (turn,) in self.rows(
                "SELECT id FROM turns WHERE state IN ('done', 'failed')"
            )
        }
        keys = set()
        for (run_id,) in self.rows(asked, word):
            known = "SELECT key FROM workflow_run_steps WHERE run_id = ?"
            keys |= {key for (key,) in self.rows(known, run_id)}
            for key in _keys():
                if turn_id_of(run_id, _asked(key)) in done:
                    keys.add(key)
        return keys

    async def run(self, http: httpx.AsyncClient, flow: Flow, word: str) -> Any:
        """Ask for the run of this word, and wait for its end."""
        return await http.post(
            f"/api/workflows/{self.workflows[flow.name]}/run",
            json={"input": word},
            headers={"Idempotency-Key": word},
        )

    async def rests(self) -> None:
        """Wait until nothing is left to do of any run."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        left = "SELECT id FROM job WHERE state <> 'done' UNION ALL "
        left += "SELECT id FROM sessions WHERE ephemeral = 1"
        while self.rows(left):
            assert loop.time() < deadline, f"left behind: {self.rows(left)}"
            await asyncio.sleep(0.01)


def _asked(key: str) -> Asked:
    index, iteration, attempt = map(int, key.split(":"))
    return Asked(index, iteration, attempt, "")


def _keys() -> set[str]:
    return {key for flow in FLOWS for key in flow.asks("")}


def _ended(daemon: DaemonProcess) -> bool:
    """Tell whether it dies; what is written behind an answer has its time too."""
    try:
        daemon.process.wait(2.0)
    except TimeoutExpired:
        return False
    return True


async def survive(
    home: Home, http: httpx.AsyncClient, point: Point, word: str
) -> tuple[httpx.AsyncClient, bool]:
    """Die at a point and go on; give the next daemon, and whether this one died."""
    flow, number, side = point
    asks, told = flow.asks(word), (flow.name, number, side)
    home.upstream.expect(asks)
    home.arm(number, side)
    with suppress(httpx.TransportError):
        await home.run(http, flow, word)
    died = await home.end()
    await http.aclose()
    before, answered = Counter(home.upstream.asked), home.answered(word)
    http = await home.start()
    answer = await home.run(http, flow, word)
    body = answer.json()
    assert (answer.status_code, body.get("output", body.get("error"))) == flow.ends(
        word
    ), (told, body)
    _check_calls(home.upstream, asks, before, answered)
    shown = (await http.get(f"/api/workflows/runs/{body['run_id']}")).json()
    assert shown["state"] == {200: "Completed", 500: "Failed"}[answer.status_code]
    assert len(shown["steps"]) == len(asks), told
    await home.rests()
    return http, died


def _check_calls(
    upstream: Upstream,
    asks: dict[str, str],
    before: Counter[str],
    answered: set[str],
) -> None:
    """See that nothing was asked twice but what was under way at the death."""
    for question, calls in Counter(asks.values()).items():
        keys = [key for key, asked in asks.items() if asked == question]
        done = sum(key in answered for key in keys)
        # What upstream had heard and nobody had written down.
        lost = before[question] - done
        assert 0 <= lost <= 1, (question, before[question], done)
        assert upstream.asked[question] == calls + lost, (question, answered)


async def survive_all(folder: Path, points: list[Point]) -> int:
    """Die at each point in turn; count the deaths."""
    deaths = 0
    async with Upstream() as upstream:
        home = Home(folder, upstream)
        http = await home.start()
        await home.prepare(http)
        for number, point in enumerate(points):
            http, died = await survive(home, http, point, f"w{number}")
            deaths += died
        await http.aclose()
        assert home.daemon is not None
        with home.daemon as daemon:
            daemon.kill()
    return deaths


@pytest.mark.conformance
async def test_kills_within_runs_ask_nothing_twice(tmp_path: Path) -> None:
    assert await survive_all(tmp_path, QUICK) == len(QUICK)


@pytest.mark.faults
async def test_kills_at_each_write_of_a_run_ask_nothing_twice(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    deaths = await survive_all(tmp_path, POINTS)
    assert deaths == len(POINTS)
    figures(f"{deaths} kills within runs in every mode: 0 lost, 0 calls too many")
