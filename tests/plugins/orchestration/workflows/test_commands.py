"""``agenthost workflow`` against a daemon that runs."""

from __future__ import annotations

import asyncio
import json
import sys
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path

import agenthost_cli
import pytest
from agenthost.testing import RunningDaemon
from agenthost.testing.scripted import Pause
from agenthost_orchestration import register_command

from .test_definitions import made, shown

Run = Callable[..., Awaitable[int]]
Captured = pytest.CaptureFixture[str]
REVIEW = """name = "review"

[[steps]]
name = "write"
agent_name = "ada"
promt = "hi"
until = "x"
"""


@pytest.fixture
def run(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the daemon's home, in a thread."""
    home = daemon.daemon.home
    facts = {"pid": 1, "listen_addr": daemon.daemon.address}
    (home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)

    async def one(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["agenthost", "workflow", *arguments])
        return await asyncio.to_thread(agenthost_cli.main)

    return one


def test_register_command_offers_workflow() -> None:
    assert "workflow" in [spec.command.name for spec in register_command()]


async def test_apply_makes_then_replaces_and_shows_what_changed(
    daemon: RunningDaemon, run: Run, capsys: Captured, tmp_path: Path
) -> None:
    file = tmp_path / "any.toml"
    file.write_text(REVIEW)
    assert await run("apply", str(file)) == 0
    told = capsys.readouterr()
    [row] = (await daemon.http.get("/api/workflows")).json()
    assert told.out == f"made review  {row['id']}\n"
    unknown = "steps[0].promt: unknown key, ignored; did you mean 'prompt'?"
    assert told.err.splitlines() == [
        f"warning: any.toml line 6: {unknown}",
        "warning: any.toml line 7: steps[0].until: is ignored: it goes with mode loop",
        "warning: any.toml line 5: steps[0].agent_name: there is no agent ada now",
    ]
    assert await run("apply", str(file)) == 0
    told = capsys.readouterr()
    assert told.out == f"replaced review  {row['id']}, changed: nothing\n"
    more = '\n[[steps]]\nmode = "collect"\n'
    file.write_text(REVIEW.replace("promt", "prompt") + more)
    assert await run("apply", str(file)) == 0
    told = capsys.readouterr()
    assert told.out.endswith("changed: steps[0].prompt, steps: 2 instead of 1\n")
    assert len((await daemon.http.get("/api/workflows")).json()) == 1


async def test_a_bad_file_is_told_with_its_lines_and_changes_nothing(
    daemon: RunningDaemon, run: Run, capsys: Captured, tmp_path: Path
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[[steps]]\nmode = "lop"\nagent_name = 5\n')
    assert await run("apply", str(file)) == 1
    told = capsys.readouterr().err
    assert "bad.toml line 2: steps[0].mode: must be one of" in told
    assert "bad.toml line 3: steps[0].agent_name: must be text" in told
    for data, words in ((b"[", "line 1"), (b"\xff", "UTF-8"), (b"", "steps: is mis")):
        file.write_bytes(data)
        assert await run("apply", str(file)) == 1
        assert words in capsys.readouterr().err
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    assert await run("apply", str(file)) == 1
    assert "larger than 1 MiB" in capsys.readouterr().err
    assert await run("apply", str(tmp_path / "none.toml")) == 2
    assert (await daemon.http.get("/api/workflows")).json() == []


async def test_what_is_exported_can_be_applied(
    daemon: RunningDaemon, run: Run, capsys: Captured, tmp_path: Path
) -> None:
    prompt = 'Say "{{input}}" \\ and\n"""\\n\x7f\r\n  end\\'
    steps = [{"agent_name": "ada", "prompt": prompt}, {"mode": "collect", "prompt": ""}]
    id_ = await made(daemon, name="one two", max_cost_usd=0.3, steps=steps)
    before = await shown(daemon, id_)
    assert await run("export", "one two") == 0
    text = capsys.readouterr().out
    assert tomllib.loads(text)["steps"][0]["prompt"] == prompt
    file = tmp_path / "again.toml"
    file.write_text(text, newline="")
    assert await run("apply", str(file), "--json") == 0
    assert json.loads(capsys.readouterr().out)["workflow_id"] == id_
    after = await shown(daemon, id_)
    assert {**after, "updated_at": ""} == {**before, "updated_at": ""}


async def test_list_show_and_delete_go_by_name_or_id(
    daemon: RunningDaemon, run: Run, capsys: Captured
) -> None:
    steps = [{"agent_name": "ada", "prompt": "one\n\x1b[2J"}]
    first = await made(daemon, name="flow", description="d", steps=steps)
    assert await run("list") == 0
    assert capsys.readouterr().out == f"{'flow':<24} {'1 step':<9} {first}\n"
    assert await run("show", "flow") == 0
    told = capsys.readouterr().out
    assert told.startswith(f"flow  {first}\ndescription: d\n")
    assert told.endswith("0. step: sequential, asks ada\n   one  [2J\n")
    assert await run("show", first.upper(), "--json") == 0
    assert json.loads(capsys.readouterr().out) == await shown(daemon, first)
    second = await made(daemon, name="flow")
    assert await run("delete", "flow") == 1
    assert f"{first}, {second}" in capsys.readouterr().err
    assert await run("delete", first) == 0
    assert capsys.readouterr().out == f"deleted {first}  {first}\n"
    assert await run("delete", "nothing") == 1
    assert "there are: flow" in capsys.readouterr().err
    assert await run("list", "--json") == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [second]


async def test_reload_tells_what_came_of_the_files(
    daemon: RunningDaemon, run: Run, capsys: Captured
) -> None:
    folder = daemon.daemon.home / "workflows"
    folder.mkdir()
    (folder / "a.toml").write_text("steps = []")
    (folder / "b.toml").write_text("[")
    assert await run("reload") == 0
    told = capsys.readouterr()
    assert told.out == "added a.toml\n0 unchanged\n"
    assert told.err.startswith("warning: workflows/b.toml line 1")
    assert await run("reload", "--json") == 0
    assert json.loads(capsys.readouterr().out)["unchanged"] == ["a.toml"]


async def test_run_prints_the_output_and_runs_are_listed_and_cancelled(
    daemon: RunningDaemon, run: Run, capsys: Captured
) -> None:
    await daemon.agent("ada")
    await made(daemon, name="talk", steps=[{"agent_name": "ada"}])
    assert await run("run", "talk", "--input", "bees") == 0
    assert capsys.readouterr().out == "You said: bees\n"
    daemon.model.says(Pause(), "never")
    assert await run("run", "talk", "--input", "wasps", "--no-wait") == 0
    told = capsys.readouterr().out.split()
    assert (told[0], told[2:]) == ("run", ["is", "running"])
    assert await run("cancel", told[1]) == 0
    assert capsys.readouterr().out == f"run {told[1]} is cancelled\n"
    assert await run("runs", "talk") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["Cancelled", "Completed"]
    assert await run("cancel", told[1]) == 1
    assert "is Cancelled already" in capsys.readouterr().err


@pytest.mark.conformance
async def test_run_tells_what_failed_and_which_names_there_are(
    daemon: RunningDaemon, run: Run, capsys: Captured
) -> None:
    await made(daemon, name="talk", steps=[{"name": "ask", "agent_name": "nobody"}])
    assert await run("run", "talk") == 1
    assert "Step 'ask' failed: agent not found: nobody" in capsys.readouterr().err
    assert await run("runs", "walk") == 1
    assert "no workflow is called 'walk'" in capsys.readouterr().err
