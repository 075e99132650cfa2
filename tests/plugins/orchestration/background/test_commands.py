"""``agenthost occasions`` against a daemon that runs."""

from __future__ import annotations

import asyncio
import json
import sys

import agenthost_cli
import pytest
from agenthost.testing import Daemons
from agenthost_orchestration.background.errands import OccasionState

from .stage import stage_of


@pytest.mark.conformance
async def test_occasions_are_listed_shown_and_cancelled(
    daemons: Daemons,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = stage_of(await daemons.start())
    home = stage.daemon.daemon.home
    facts = {"pid": 1, "listen_addr": stage.daemon.daemon.address}
    (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)
    evil = stage.occasion(state=OccasionState.MISSED, detail="\x1b[2J\nlate", text="a")
    due = stage.occasion()
    await stage.write(evil, due)

    async def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["agenthost", "occasions", *arguments])
        assert await asyncio.to_thread(agenthost_cli.main) == 0
        return capsys.readouterr().out

    listed = await run("list", "--state", "missed", "--source", "schedule")
    assert listed.endswith("schedule noon  missed  \ufffd[2J late\n")
    shown = await run("show", evil.id)
    assert shown.endswith("cost: 0 USD\n\na\n")
    told = json.loads(await run("cancel", due.id, "--json"))
    assert (told["id"], told["state"]) == (due.id, "cancelled")
