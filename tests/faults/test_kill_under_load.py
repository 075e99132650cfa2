"""kill -9 while everybody writes: nothing acknowledged is lost, no effect is twice.

Talkers over three faces, with and without keys and tools; one client that makes and
deletes agents, one that stores values, one that sets and removes providers' keys. The
tool's effects are lines of a file that the daemon does not know.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess
from agenthost.testing.simulators import Heard, ScriptedCall, Turn

from .asking import Attempt, Way
from .laws import ORPHANS, RUNNING
from .oracle import Oracle, answer_to
from .worlds import CHOICE, client

TOOL = "count_effect"
MANIFEST = 'name = "{name}"\n[capabilities]\ntools = ["{tool}"]\n'
GAPS = """
    select count(*) from (select 1 from messages group by session_id
    having max(seq) - min(seq) + 1 != count(*))
"""
PLUGIN = """
from agenthost import Effect, ToolResult, ToolSpec, hookimpl
from pydantic import BaseModel


class Token(BaseModel):
    token: str


async def count(context, call):
    with open({path!r}, "a") as file:
        file.write(call.token + "\\n")
    return ToolResult("counted")


@hookimpl
def register_tool():
    yield ToolSpec("count_effect", "Count.", Token, Effect.EXTERNAL, count)
"""


def write_plugin(folder: Path, effects: Path) -> dict[str, str]:
    """Write an installed distribution with the tool; return how to find it."""
    info = folder / "counting-1.dist-info"
    info.mkdir(parents=True)
    (folder / "counting.py").write_text(PLUGIN.format(path=str(effects)))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1")
    (info / "entry_points.txt").write_text("[agenthost.tools]\ncounting = counting\n")
    return {"PYTHONPATH": str(folder), "AGENTHOST_PLUGINS__ENABLE": "tool:counting"}


class CallingOracle(Oracle):
    """Calls the tool once where the question says ``use``, then answers."""

    def turn(self, heard: Heard) -> Turn:
        """What is answered."""
        question = heard.said[-1]
        if question.startswith("use") and heard.body["messages"][-1]["role"] != "tool":
            arguments = json.dumps({"token": question})
            return Turn(calls=(ScriptedCall(TOOL, arguments, f"call {question}"),))
        return Turn(answer_to(question))


@dataclass
class Talker:
    """Asks one agent one question after another, over one face."""

    agent: str
    way: Way
    keyed: bool
    asked: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    async def work(self, http: httpx.AsyncClient) -> None:
        """Ask until the daemon dies."""
        while True:
            number = len(self.asked)
            text = f"{'use' if number % 2 else 'say'} {self.agent[:8]} {number}"
            self.asked.append(text)
            if not await self.ask(http, text):
                return

    async def ask(self, http: httpx.AsyncClient, text: str) -> bool:
        """Ask, with a key that the question names; False when the daemon is gone."""
        if await self._try(http, text, self.way):
            self.done.append(text)
            return True
        return False

    async def retry(self, http: httpx.AsyncClient) -> int:
        """Ask again what the kill left open: it is answered, twice the same."""
        if not self.keyed or not self.asked or self.asked[-1] in self.done:
            return 0
        for _ in range(2):
            told = "a retried turn has no answer"
            assert await self._try(http, self.asked[-1], Way.BLOCKING), told
        self.done.append(self.asked[-1])
        return 1

    async def _try(self, http: httpx.AsyncClient, text: str, way: Way) -> bool:
        attempt = Attempt(way, text if self.keyed else None)
        attempt.go(http, self.agent, text)
        assert attempt.task is not None
        await attempt.task
        found = attempt.outcome
        assert not found.done or found.text == answer_to(text), found
        return found.done

    def check(self, shown: list[dict[str, str]]) -> None:
        """What was answered is there, once and in order, with its answer behind it."""
        said = [m["content"] for m in shown]
        asked = [m["content"] for m in shown if m["role"] == "User"]
        assert len(asked) == len(set(asked)), "a message is stored twice"
        assert [text for text in asked if text in set(self.done)] == self.done
        for text in self.done:
            behind = said[said.index(text) + 1 : said.index(text) + 3]
            assert answer_to(text) in behind, f"{text}: {behind}"


@dataclass
class Facts:
    """Values that one client writes: sure when acknowledged, else either."""

    sure: dict[str, object] = field(default_factory=dict)
    open: dict[str, object] = field(default_factory=dict)
    count: int = 0

    def tries(self, name: str, value: object) -> None:
        self.open[name] = value

    def knows(self, name: str) -> None:
        self.sure[name] = self.open.pop(name)
        self.count += 1

    def check(self, name: str, found: object) -> None:
        """What is found is what was acknowledged last, or was being written."""
        allowed = [self.sure.get(name)]
        if name in self.open:
            allowed.append(self.open.pop(name))
        assert found in allowed, f"{name} is {found!r}, not of {allowed}"
        self.sure[name] = found


class Everybody:
    """All clients of a daemon through all its lives."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.talkers: list[Talker] = []
        self.values = Facts()
        self.keys = Facts()
        self.agents = Facts()
        self.retried = 0
        self._count = 0

    async def arrive(self, http: httpx.AsyncClient) -> None:
        """Make the talkers' agents."""
        faces = [(way, False) for way in Way]
        faces += [(Way.BLOCKING, True), (Way.SSE, True)]
        for number, (way, keyed) in enumerate(faces * 2):
            agent = await self._create(http, f"talker{number}")
            self.talkers.append(Talker(agent, way, keyed))

    async def until_killed(self, process: DaemonProcess, seconds: float) -> None:
        """Let all work, then kill the daemon under them."""
        async with client(str(process.http.base_url)) as http:
            work = [talker.work(http) for talker in self.talkers]
            work += [self._store(http), self._set_keys(http), self._make_agents(http)]
            tasks = [asyncio.create_task(each) for each in work]
            await asyncio.sleep(seconds)
            process.kill()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                assert ended is None or isinstance(ended, httpx.TransportError), ended

    async def check(self, process: DaemonProcess) -> None:
        """Hold everything that was acknowledged against what is there."""
        async with client(str(process.http.base_url)) as http:
            for talker in self.talkers:
                path = f"/api/agents/{talker.agent}/session"
                talker.check((await http.get(path)).json()["messages"])
            await self._check_facts(http)
            for talker in self.talkers:
                self.retried += await talker.retry(http)

    async def _check_facts(self, http: httpx.AsyncClient) -> None:
        for path in {*self.values.sure, *self.values.open}:
            answer = await http.get(path)
            found = answer.json()["value"] if answer.status_code == 200 else None
            self.values.check(path, found)
        rows = (await http.get("/api/providers")).json()["providers"]
        status = {row["name"]: row["auth_status"] for row in rows}
        for slug in {*self.keys.sure, *self.keys.open}:
            self.keys.check(slug, status[slug])
        alive = {row["name"] for row in (await http.get("/api/agents")).json()}
        for name in {*self.agents.sure, *self.agents.open}:
            self.agents.check(name, name in alive)

    async def _store(self, http: httpx.AsyncClient) -> None:
        path = f"/api/memory/agents/{self.talkers[0].agent}/kv/number"
        while True:
            self._count += 1
            self.values.tries(path, self._count)
            answer = await http.put(path, json={"value": self._count})
            assert answer.status_code == 200, answer.text
            self.values.knows(path)

    async def _set_keys(self, http: httpx.AsyncClient) -> None:
        path = "/api/providers/groq/key"
        self.keys.sure.setdefault("groq", "missing")
        while True:
            self.keys.tries("groq", "configured")
            answer = await http.post(path, json={"api_key": "sk-killed"})
            assert answer.status_code == 200, answer.text
            self.keys.knows("groq")
            self.keys.tries("groq", "missing")
            answer = await http.delete(path)
            assert answer.status_code == 200, answer.text
            self.keys.knows("groq")

    async def _make_agents(self, http: httpx.AsyncClient) -> None:
        while True:
            self._count += 1
            name = f"passing{self._count}"
            self.agents.sure[name] = False
            self.agents.tries(name, value=True)
            agent = await self._create(http, name)
            self.agents.knows(name)
            if self.chance.random() < 0.7:
                self.agents.tries(name, value=False)
                answer = await http.delete(f"/api/agents/{agent}")
                assert answer.status_code == 200, answer.text
                self.agents.knows(name)

    async def _create(self, http: httpx.AsyncClient, name: str) -> str:
        manifest = MANIFEST.format(name=name, tool=TOOL)
        answer = await http.post("/api/agents", json={"manifest_toml": manifest})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["agent_id"])


def check_rows(home: Path) -> None:
    """Nothing runs, nothing belongs to nobody, no message is missing between others."""
    with closing(sqlite3.connect(home / "data/agenthost.db")) as connection:
        for query in (RUNNING, ORPHANS, GAPS):
            counts = [count for (count,) in connection.execute(query)]
            assert not any(counts), query
        ((verdict,),) = connection.execute("pragma quick_check")
        assert verdict == "ok", verdict


def check_effects(effects: Path, talkers: list[Talker]) -> int:
    """Each effect happened at most once, and once where its turn has its answer."""
    seen = Counter(effects.read_text(encoding="utf-8").splitlines())
    assert not [token for token, times in seen.items() if times > 1], "twice"
    sure = {text for t in talkers for text in t.done if text.startswith("use")}
    # A retried turn is told that the outcome of its call is not known.
    first_try = {text for t in talkers if not t.keyed for text in t.done}
    assert sure & first_try <= seen.keys(), "an effect is missing"
    return seen.total()


async def campaign(folder: Path, kills: int, seed: int) -> str:
    home, effects = folder / "home", folder / "effects.txt"
    effects.touch()
    everybody = Everybody(seed)
    async with CallingOracle() as oracle:
        home.mkdir()
        (home / "config.toml").write_text(oracle.config, encoding="utf-8")
        environ = CHOICE | write_plugin(folder / "plugin", effects)
        environ |= {"AGENTHOST_COMPACTION__THRESHOLD_MESSAGES": "1000000"}
        for life in range(kills + 1):
            process = await asyncio.to_thread(DaemonProcess, home, environ)
            with process:
                if life == 0:
                    async with client(str(process.http.base_url)) as http:
                        await everybody.arrive(http)
                await everybody.check(process)
                check_rows(home)
                if life < kills:
                    seconds = everybody.chance.uniform(0.05, 0.8)
                    await everybody.until_killed(process, seconds)
    times = check_effects(effects, everybody.talkers)
    return "; ".join(told(everybody, kills, times))


def told(everybody: Everybody, kills: int, effects: int) -> Iterator[str]:
    """The figures, each beside its limit."""
    done = sum(len(talker.done) for talker in everybody.talkers)
    tried = sum(len(talker.asked) for talker in everybody.talkers)
    assert done > kills
    yield f"{kills} kills: 0 lost (limit 0) of {done} turns of {tried} tried"
    yield f"{everybody.values.count} values, {everybody.keys.count} keys"
    yield f"{everybody.agents.count} agents made or deleted"
    yield f"{effects} effects, 0 twice (limit 0)"
    yield f"{everybody.retried} retried by key, all answered"


@pytest.mark.conformance
async def test_kills_under_load_lose_nothing_and_repeat_no_effect(
    tmp_path: Path,
) -> None:
    await campaign(tmp_path, kills=3, seed=5)


@pytest.mark.faults
async def test_many_kills_under_load_lose_nothing_and_repeat_no_effect(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    figures(await campaign(tmp_path, kills=50, seed=6))
