"""``agenthost schedule`` against a daemon that runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable

import agenthost_cli
import pytest
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon
from agenthost_orchestration import register_command

from .stage import Record

Run = Callable[..., Awaitable[int]]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
async def running(daemons: Daemons, record: Record) -> RunningDaemon:
    daemon = await daemons.start(clock=ManualClock())
    await daemon.agent("ada")
    return daemon


@pytest.fixture
def run(running: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the daemon's home, in a thread."""
    home = running.daemon.home
    facts = {"pid": 1, "listen_addr": running.daemon.address}
    (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)

    async def one(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["agenthost", "schedule", *arguments])
        return await asyncio.to_thread(agenthost_cli.main)

    return one


def test_register_command_offers_schedule() -> None:
    assert "schedule" in [spec.command.name for spec in register_command()]


async def test_a_schedule_is_made_paused_resumed_run_and_deleted(
    run: Run, record: Record, capsys: Captured
) -> None:
    told = ("--agent", "ada", "--prompt", "hi", "--zone", "Asia/Tokyo")
    assert await run("create", "tea\x1b[2J", "--when", "0 9 * * *", *told) == 0
    line = capsys.readouterr().out
    assert "0 9 * * *" in line
    assert "2026-01-02T00:00:00.000Z" in line
    assert "\x1b" not in line
    assert await run("pause", "tea\x1b[2J") == 0
    assert "paused: by a person" in capsys.readouterr().out
    assert await run("list") == 0
    assert "paused: by a person" in capsys.readouterr().out
    assert await run("resume", "tea\x1b[2J") == 0
    assert "2026-01-02T00:00:00.000Z" in capsys.readouterr().out
    assert await run("next", "tea\x1b[2J", "--count", "2") == 0
    assert capsys.readouterr().out.split() == [
        "2026-01-02T09:00:00+09:00",
        "2026-01-03T09:00:00+09:00",
    ]
    assert await run("run", "tea\x1b[2J") == 0
    begun = capsys.readouterr().out.strip()
    await record.end(text="done\x07")
    assert await run("occasions", "tea\x1b[2J", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["occasions"]
    assert (row["id"], row["state"]) == (begun, "done")
    assert await run("occasions", "tea\x1b[2J") == 0
    assert "\x07" not in capsys.readouterr().out
    assert await run("show", "tea\x1b[2J") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["when"] == {"cron": "0 9 * * *", "zone": "Asia/Tokyo"}
    assert await run("delete", shown["id"]) == 0
    assert await run("show", shown["id"]) == 1
    assert "no schedule is named" in capsys.readouterr().err


async def test_what_is_wrong_names_the_option_or_the_field(
    run: Run, capsys: Captured
) -> None:
    event = ("--event", "due")
    for arguments, told in (
        (("--when", "every 1s", *event), "must be 10 s"),
        (("--when", "every 1h", *event, "--data", "{"), "--data"),
        (("--when", "99 * * * *", *event), "when.cron"),
        (("--when", "every 1h"), "what: "),
        (("--when", "every 1h", *event, "--quiet-hours", "x"), "quiet_hours"),
    ):
        assert await run("create", "x", *arguments) != 0
        assert told in capsys.readouterr().err, arguments
    assert await run("list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["total"] == 0
