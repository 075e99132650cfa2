"""The file is read anew: what took effect, what needs a restart, what is refused."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import sys
from pathlib import Path

import agenthost
import agenthost_cli
import pytest
from agenthost.testing import Daemons

PLUGINS = Path(agenthost.__file__).parents[2] / "plugins"
FIRST = "[compaction]\nthreshold_messages = 50\n[turns]\nmax_iterations = 9\n"
KEY = "canary-key-0123456789"
SECOND = (
    f'api_key = "{KEY}"\n[compaction]\nthreshold_messages = 4\nkeep_recent = 2\n'
    "[turns]\nmax_iterations = 8\n[turnz]\nx = 1\n"
)
RELOAD = "/api/config/reload"


async def test_a_file_is_read_anew(daemons: Daemons) -> None:
    daemon = await daemons.start(config=FIRST)
    agent, file = await daemon.agent(), daemon.daemon.home / "config.toml"
    for text in ("one", "two", "three"):
        await agent.ask(text)
    nothing: dict[str, list[str]] = {
        "in_effect": [],
        "need_restart": [],
        "warnings": [],
    }
    assert (await daemon.http.post(RELOAD)).json() == nothing

    for wrong in ("[compaction]\nkeep_recent = 0", "[compaction", "log_level = 7"):
        file.write_text(f'api_key = "{KEY}"\n{wrong}\n')
        refused = await daemon.http.post(RELOAD)
        assert refused.status_code == 409, refused.text
        assert "all stays as it is" in refused.text
        assert KEY not in refused.text
        assert str(daemon.daemon.home) not in refused.text
    file.write_text(SECOND)
    # Twice at once it takes effect once, and both are told the truth.
    both = await asyncio.gather(*(daemon.http.post(RELOAD) for _ in range(2)))
    assert KEY not in "".join(each.text for each in both)
    first, second = sorted((each.json() for each in both), key=lambda e: e["in_effect"])
    keys = ["compaction.keep_recent", "compaction.threshold_messages"]
    assert (first["in_effect"], second["in_effect"]) == ([], keys)
    restart = ["api_key", "turns.max_iterations", "turnz.x"]
    assert first["need_restart"] == second["need_restart"] == restart
    assert "turnz" in second["warnings"][0]
    path = f"/api/agents/{agent.id}/session/compact"
    assert (await daemon.http.post(path)).json()["status"] == "compacted"
    # What needs a restart is as it was.
    assert (await daemon.http.get("/api/agents")).status_code == 200
    rows = await daemon.daemon.store.read(
        "SELECT details FROM audit_entries WHERE event_type = 'configuration_changed'"
    )
    assert len(rows) == 1
    assert KEY not in rows[0]["details"]


async def test_the_command_tells_what_came_of_each_key(
    daemons: Daemons,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    daemon = await daemons.start(config=FIRST)
    home = daemon.daemon.home
    facts = {"pid": 1, "listen_addr": daemon.daemon.address}
    (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)

    async def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["agenthost", "reload", *arguments])
        code = await asyncio.to_thread(agenthost_cli.main)
        told = capsys.readouterr()
        return told.out if code == 0 else f"{code}: {told.err}"

    assert await run() == "nothing has changed\n"
    changed = FIRST.replace("50", "40").replace("9", "8")
    (home / "config.toml").write_text(changed)
    assert (await run()).splitlines() == [
        "in effect        compaction.threshold_messages",
        "needs a restart  turns.max_iterations",
    ]
    told = json.loads(await run("--json"))
    assert told["in_effect"] == []
    (home / "config.toml").write_text("[compaction]\nkeep_recent = 0\n")
    assert (await run()).startswith("1: ")


@pytest.mark.conformance
def test_sections_that_take_effect_are_kept_by_nobody() -> None:
    """What is said to be read at each use is given to no object at its making."""
    live: set[str] = set()
    kept: set[str] = set()
    for path in PLUGINS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "settings(" not in text and "read_at_use" not in text:
            continue
        live |= {
            *re.findall(
                r"class (\w+)\(Table\):(?:(?!\nclass ).)*?read_at_use", text, re.S
            )
        }
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign) and isinstance(
                node.targets[0], ast.Attribute
            ):
                kept |= {*re.findall(r"settings\((\w+)\)", ast.unparse(node.value))}
    assert live >= {"CompactionSection", "WebFetchSection", "UploadsSection"}
    assert not live & kept
