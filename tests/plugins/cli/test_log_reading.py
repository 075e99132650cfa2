"""The log over the API, and ``agenthost logs``."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path

import agenthost_cli
import pytest
from agenthost.testing.daemons import RunningDaemon
from agenthost_cli.log_ring import KEPT, LONGEST, LogRing
from agenthost_cli.plugin import register_command, register_routes, register_service

LOG = logging.getLogger("agenthost.test")


def record(text: str, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("agenthost.test", level, "", 1, text, (), None)


async def kept(ring: LogRing, after: int = 0) -> list[tuple[int, dict[str, str]]]:
    lines = ring.lines(after, logging.DEBUG, follow=False)
    return [(number, json.loads(text)) async for number, text in lines]


def test_the_plugin_offers_the_log() -> None:
    assert [spec.command.name for spec in register_command()] == ["logs"]
    assert [spec.name for spec in register_service()] == ["log"]
    assert [group.name for group in register_routes()] == ["logs"]


async def test_the_newest_lines_are_kept_blotted_and_short() -> None:
    ring = LogRing()
    for number in range(KEPT + 5):
        ring.emit(record(f"line {number}"))
    ring.emit(record("api_key=sk-0123456789abcdef " + "\N{SNOWMAN}" * 10_000))
    lines = await kept(ring)
    assert len(lines) == KEPT
    assert lines[0][1]["message"] == "line 6"
    number, last = lines[-1]
    assert number == KEPT + 6
    assert len(json.dumps(last)) < LONGEST
    assert "sk-0123" not in last["message"]
    assert last["message"].endswith("(cut; the log has it all)")
    assert await kept(ring, KEPT + 5) == lines[-1:]
    # A reader of the daemon before this one is told all.
    assert len(await kept(ring, 10**12)) == KEPT


async def test_readers_follow_until_the_end_and_leave_nothing(
    daemon: RunningDaemon,
) -> None:
    LOG.error("before\nand more")
    LOG.info("less")
    seen: list[str] = []
    path = "/api/logs?level=error&follow=true"
    async with daemon.http.stream("GET", path, headers={"last-event-id": "x"}) as told:
        assert told.headers["content-type"].startswith("text/event-stream")
        async for line in told.aiter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line[6:])["message"])
                if len(seen) == 1:
                    await asyncio.to_thread(LOG.error, "from a thread")
                if seen[-1] == "from a thread":
                    break
    assert seen[-2:] == ["before\nand more", "from a thread"]
    assert "less" not in seen


async def test_logs_prints_what_is_kept_and_obeys_none_of_it(
    daemon: RunningDaemon,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    LOG.warning("odd \x1b[2J thing")
    home = daemon.daemon.home
    facts = {"pid": 1, "listen_addr": daemon.daemon.address}
    await asyncio.to_thread(
        Path(home / "daemon.json").write_text, json.dumps(facts), encoding="utf-8"
    )
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["agenthost", "logs", "--level", "warning"])
    assert await asyncio.to_thread(agenthost_cli.main) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.endswith(
        "warning agenthost.test: odd \N{REPLACEMENT CHARACTER}[2J thing"
    )
