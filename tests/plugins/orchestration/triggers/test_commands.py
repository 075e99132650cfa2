"""``agenthost trigger`` against a daemon that runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable

import agenthost_cli
import pytest
from agenthost_orchestration import register_command

from .stage import Stage

Run = Callable[..., Awaitable[int]]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the daemon's home, in a thread."""
    home = stage.daemon.daemon.home
    facts = {"pid": 1, "listen_addr": stage.daemon.daemon.address}
    (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    (home / "config.toml").unlink()
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)

    async def one(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["agenthost", "trigger", *arguments])
        return await asyncio.to_thread(agenthost_cli.main)

    return one


def test_register_command_offers_trigger() -> None:
    assert "trigger" in [spec.command.name for spec in register_command()]


async def test_a_trigger_is_made_seen_and_deleted_in_a_terminal(
    stage: Stage, run: Run, capsys: Captured
) -> None:
    pattern = '{"content_match": {"substring": "order"}}'
    terms = ("--max-fires", "1", "--prompt", "Look: {{event}}", "--cooldown", "0")
    assert await run("create", "tester", pattern, *terms) == 0
    trigger = capsys.readouterr().out.strip()
    shown = await stage.shown(trigger)
    assert (shown["max_fires"], shown["cooldown_secs"]) == (1, 0)
    assert shown["prompt_template"] == "Look: {{event}}"
    await stage.publish()
    await stage.settled()
    assert await run("list", "--agent", "tester") == 0
    told = capsys.readouterr().out
    assert told == (
        f"{trigger}  {stage.agent.id}  {json.dumps(shown['pattern'])}  "
        "fired 1 of 1  spent\n"
    )
    assert await run("occasions", trigger) == 0
    assert "  due " in capsys.readouterr().out
    assert await run("disable", trigger) == 0
    assert await run("enable", trigger) == 1
    assert "raise max_fires" in capsys.readouterr().err
    assert await run("delete", trigger) == 0
    assert await run("list", "--json") == 0
    assert json.loads(capsys.readouterr().out.rpartition("deleted")[2][37:]) == []


async def test_what_is_unknown_is_told(
    stage: Stage, run: Run, capsys: Captured
) -> None:
    assert await run("create", "nobody", "all") == 1
    assert "no agent is named 'nobody'; there are: tester" in capsys.readouterr().err
    assert await run("create", "tester", "everything") == 1
    assert "pattern: unknown; it is one of" in capsys.readouterr().err
    assert await run("create", "tester", "{all}") == 1
    assert "the pattern is no JSON" in capsys.readouterr().err
