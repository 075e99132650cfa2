"""A copy made while agents answer: whole turns, all that was acknowledged before it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import agenthost_cli
import pytest
from agenthost.testing import Daemons, RunningAgent
from agenthost.testing.daemons import RunningDaemon

pytestmark = pytest.mark.conformance
FEW = 5
CONFIG = "[compaction]\nthreshold_messages = 6\nkeep_recent = 2\n"


class Talk:
    """Questions to one agent, one after another, and how many were answered."""

    def __init__(self, agent: RunningAgent) -> None:
        self.agent = agent
        self.answered = 0
        self.over = False
        self.warm = asyncio.Event()

    async def go_on(self) -> None:
        while not self.over:
            await self.agent.ask(f"question {self.answered}")
            self.answered += 1
            if self.answered == FEW:
                self.warm.set()


async def said_in(daemon: RunningDaemon, session: str) -> list[str]:
    """Everything that was ever said, summarised or not."""
    answer = await daemon.http.get(f"/api/sessions/{session}/export")
    return [message["content"] for message in answer.json()["messages"]]


async def test_a_copy_made_while_agents_answer_keeps_every_promise(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await daemons.start(config=CONFIG)
    talks = [Talk(await first.agent(name)) for name in ("ada", "bob", "eve")]
    working = [asyncio.create_task(talk.go_on()) for talk in talks]

    async def command(*arguments: str, home: Path = first.daemon.home) -> None:
        monkeypatch.setenv("AGENTHOST_HOME", str(home))
        monkeypatch.setattr(sys, "argv", ["agenthost", *arguments])
        assert await asyncio.to_thread(agenthost_cli.main) == 0, arguments

    async with asyncio.timeout(60):
        await asyncio.gather(*(talk.warm.wait() for talk in talks))
    before = [talk.answered for talk in talks]
    archive, goal = str(tmp_path / "busy.tar.gz"), tmp_path / "copy"
    await command("backup", archive)
    for talk in talks:
        talk.over = True
    await asyncio.gather(*working)
    await command("check", archive)
    await command("restore", archive, "--to", str(goal))

    second = await daemons.start(home=goal, config=CONFIG)
    for talk, known in zip(talks, before, strict=True):
        agent = RunningAgent(second, talk.agent.id, talk.agent.name)
        session = (await agent.session())["session_id"]
        said = await said_in(second, session)
        theirs = await said_in(first, session)
        # A beginning of the original, with all that was acknowledged before.
        assert said == theirs[: len(said)]
        assert len(said) >= 2 * known
        questions = said[::2]
        assert questions == [f"question {n}" for n in range(len(questions))]
        # It goes on there: an answer, a pin, a summary taken back.
        assert await agent.ask("and here?") == "You said: and here?"
        pinned = await second.http.put(f"/api/sessions/{session}/pins/0")
        assert pinned.json()["pinned"] == [0]
        path = f"/api/agents/{agent.id}/session/compact/undo"
        assert (await second.http.post(path)).json()["status"] == "undone"
    assert (await second.http.get("/api/audit/verify")).json()["status"] == "valid"
    await second.daemon.stop()
    await command("check", home=goal)
