"""More commands of ``agenthost``: models, stop, undo, pin, the trial of a provider."""

from __future__ import annotations

import json

import pytest
from agenthost import Cancelled
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Pause

from .test_terminal import Run, run

__all__ = ["run"]
HEADS = ["MODEL", "PROVIDER", "TIER", "WINDOW", "IN", "$/M", "OUT", "$/M"]


async def test_models_are_listed_and_found_by_words(
    daemon: RunningDaemon, run: Run
) -> None:
    head, *rows = (await run("models", "list")).splitlines()
    assert head.split()[:8] == HEADS
    every = (await daemon.http.get("/api/models")).json()["models"]
    assert len(rows) == len(every)
    found = json.loads(await run("models", "list", "CLAUDE", "bedrock", "--json"))
    theirs = [row["id"] for row in every if row["provider"] == "bedrock"]
    assert [row["id"] for row in found] == [each for each in theirs if "claude" in each]
    assert found
    shown = (await run("models", "list", "claude", "bedrock")).splitlines()[1:]
    assert [row.split()[0] for row in shown] == [row["id"] for row in found]
    assert json.loads(await run("models", "list", "no-such", "--json")) == []


async def test_a_running_answer_is_stopped_in_the_terminal(
    daemon: RunningDaemon, run: Run
) -> None:
    agent = await daemon.agent("ada")
    assert await run("agent", "stop", "ada") == "no turn was running\n"
    pause = Pause()
    daemon.model.says("one", pause, "two")
    turn = agent.start("count")
    await turn.seen("one")
    assert "topped" in await run("agent", "stop", "ada")
    with pytest.raises(Cancelled, match="stopped by request"):
        await turn.result()


async def test_a_message_is_pinned_and_a_summary_taken_back(
    daemon: RunningDaemon, run: Run
) -> None:
    agent = await daemon.agent("ada")
    daemon.model.says("hi")
    await agent.ask("hello")
    session = (await run("session", "list")).split()[-1]
    assert await run("session", "pin", session, "0") == "pinned: 0\n"
    assert await run("session", "pin", session, "0", "--off") == "pinned: nothing\n"
    assert "message not found: 9" in await run("session", "pin", session, "9", code=1)
    assert "othing to undo" in await run("session", "undo", "ada")


async def test_a_provider_is_tried_in_the_terminal(
    daemon: RunningDaemon, run: Run
) -> None:
    assert "OPENAI_API_KEY" in await run("providers", "test", "openai", code=1)
    assert "openai" in await run("providers", "test", "opnai", code=1)
