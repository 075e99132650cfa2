"""Files of the home are workflows: made, changed, told of, never read beyond."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from agenthost import OPERATOR, Context
from agenthost.testing import Daemons, Recorded, RunningDaemon
from agenthost_orchestration.orchestration import orchestration_of
from agenthost_orchestration.workflows import files as files_module
from agenthost_orchestration.workflows.events import WorkflowEvent
from agenthost_orchestration.workflows.files import _Load
from agenthost_orchestration.workflows.folder import Found

from .test_definitions import shown

REVIEW = """
description = "Two eyes see more"
max_cost_usd = 0.5

[[steps]]
name = "write"
agent_name = "ada"
prompt = \"\"\"
Write of {{input}}.
\"\"\"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "workflows"
    made.mkdir(parents=True)
    return made


async def reloaded(daemon: RunningDaemon) -> dict[str, Any]:
    answer = await daemon.http.post("/api/workflows/reload")
    assert answer.status_code == 200, answer.text
    return {key: value for key, value in answer.json().items() if value}


async def listed(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    rows = (await daemon.http.get("/api/workflows")).json()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


async def health(daemon: RunningDaemon) -> list[str]:
    told = (await daemon.http.get("/api/health/detail")).json()["config_warnings"]
    return [line for line in told if line.startswith("workflows")]


async def test_a_file_is_a_workflow_whose_id_stays(
    daemons: Daemons, folder: Path
) -> None:
    (folder / "review.toml").write_text(REVIEW)
    daemon = await daemons.start(home=folder.parent)
    row = (await listed(daemon))["review"]
    assert (row["file"], row["owner"]) == ("review.toml", "operator:operator")
    before = await shown(daemon, row["id"])
    assert before["max_cost_usd"] == 0.5
    assert before["steps"][0]["prompt"] == "Write of {{input}}.\n"
    assert await reloaded(daemon) == {"unchanged": ["review.toml"]}
    await daemon.daemon.stop()
    (folder / "review.toml").write_text(f'name = "other"\n{REVIEW}')
    (folder / "b.toml").write_text("steps = []")
    again = await daemons.start(home=folder.parent)
    after = await listed(again)
    assert set(after) == {"other", "b"}
    assert after["other"]["id"] == row["id"]
    assert after["other"]["created_at"] == row["created_at"]
    assert await health(again) == []


async def test_a_reload_tells_what_it_did(daemons: Daemons, folder: Path) -> None:
    daemon = await daemons.start(home=folder.parent)
    assert await reloaded(daemon) == {}
    (folder / "a.toml").write_text("steps = []")
    (folder / "b.toml").write_text(REVIEW.replace("prompt", "promt"))
    promt = "steps[0].promt: unknown key, ignored; did you mean 'prompt'?"
    assert await reloaded(daemon) == {
        "added": ["a.toml", "b.toml"],
        "warnings": [
            "workflows/a.toml line 1: steps: is empty: a run gives back its input",
            f"workflows/b.toml line 8: {promt}",
        ],
    }
    (folder / "a.toml").write_text(REVIEW)
    assert await reloaded(daemon) == {"changed": ["a.toml"], "unchanged": ["b.toml"]}


async def test_a_file_that_has_gone_is_told_of_and_its_workflow_stays(
    daemons: Daemons, folder: Path
) -> None:
    file = folder / "review.toml"
    file.write_text(REVIEW)
    daemon = await daemons.start(home=folder.parent)
    row = (await listed(daemon))["review"]
    path = f"/api/workflows/{row['id']}"
    for asked in (daemon.http.delete(path), daemon.http.put(path, json={"steps": []})):
        answer = await asked
        assert answer.status_code == 409
        assert "workflows/review.toml" in answer.json()["error"]
    file.unlink()
    told = await reloaded(daemon)
    assert told["gone"] == ["review.toml"]
    assert row["id"] in told["problems"][0]
    assert await health(daemon) == told["problems"]
    assert set(await listed(daemon)) == {"review"}
    assert (await daemon.http.delete(path)).status_code == 200
    assert await reloaded(daemon) == {}
    assert await health(daemon) == []


async def test_a_workflow_that_was_put_has_its_file_no_more(
    daemons: Daemons, folder: Path
) -> None:
    file = folder / "review.toml"
    file.write_text(REVIEW)
    daemon = await daemons.start(home=folder.parent)
    row = (await listed(daemon))["review"]
    file.unlink()
    body = {"name": "mine", "steps": []}
    await daemon.http.put(f"/api/workflows/{row['id']}", json=body)
    file.write_text(REVIEW)
    assert await reloaded(daemon) == {"added": ["review.toml"]}
    now = await listed(daemon)
    assert (now["mine"]["id"], now["mine"]["file"]) == (row["id"], None)
    assert now["review"]["id"] != row["id"]


async def test_no_broken_file_stops_the_start(daemons: Daemons, folder: Path) -> None:
    (folder / "good.toml").write_text(REVIEW)
    (folder / "syntax.toml").write_text('name = "x"\n[[steps]\n')
    (folder / "fields.toml").write_text(
        'name = "x"\n[[steps]]\nagent_name = "a"\nmode = "lop"\ntimeout_secs = 0\n'
    )
    (folder / "bytes.toml").write_bytes(b'name = "x"\nname2 = "\xff"\n')
    (folder / "empty.toml").write_text("")
    (folder / "folder.toml").mkdir()
    (folder / "large.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    (folder / ".hidden.toml").write_text("[")
    (folder / "notes.txt").write_text("[")
    os.mkfifo(folder / "pipe.toml")
    daemon = await daemons.start(home=folder.parent)
    assert set(await listed(daemon)) == {"good"}
    mode = "must be one of sequential, fan_out, collect, conditional, loop"
    least = "must be greater than or equal to 1"
    closed = "Expected ']]' at the end of an array declaration"
    assert await health(daemon) == [
        "workflows/bytes.toml line 2: not UTF-8 text; save the file as UTF-8",
        "workflows/empty.toml: steps: is missing; add it",
        f"workflows/fields.toml line 4: steps[0].mode: {mode}; did you mean 'loop'?",
        f"workflows/fields.toml line 5: steps[0].timeout_secs: {least}",
        "workflows/folder.toml is no file",
        "workflows/large.toml is larger than 1 MiB; make it smaller",
        "workflows/pipe.toml is no file",
        f"workflows/syntax.toml line 2, column 8: {closed}; correct the TOML there",
    ]
    status = (await daemon.http.get("/api/health")).json()["status"]
    assert status == "ok"
    (folder / "fields.toml").write_text("steps = []")
    await reloaded(daemon)
    assert not [line for line in await health(daemon) if "fields" in line]


async def test_a_file_that_breaks_leaves_its_workflow_as_it_was(
    daemons: Daemons, folder: Path
) -> None:
    (folder / "review.toml").write_text(REVIEW)
    daemon = await daemons.start(home=folder.parent)
    before = await listed(daemon)
    (folder / "review.toml").write_text("[")
    told = await reloaded(daemon)
    assert len(told["problems"]) == 1
    assert await listed(daemon) == before


async def test_nothing_beyond_the_folder_is_read(
    daemons: Daemons, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.toml").write_text('name = "secret"\nsteps = []')
    (folder / "out.toml").symlink_to(tmp_path / "secret.toml")
    (folder / "up.toml").symlink_to("../../secret.toml")
    (folder / "self.toml").symlink_to("self.toml")
    (folder / "gone.toml").symlink_to("nothing.toml")
    (folder / "within").mkdir()
    (folder / "within" / "flow").write_text(REVIEW)
    (folder / "linked.toml").symlink_to("within/flow")
    daemon = await daemons.start(home=folder.parent)
    assert set(await listed(daemon)) == {"linked"}
    told = await health(daemon)
    assert len(told) == 4
    leads = "leads out of the folder; put the file itself there"
    assert f"workflows/out.toml {leads}" in told
    assert f"workflows/up.toml {leads}" in told


async def test_a_file_that_is_loaded_many_times_at_once_is_one_workflow(
    daemons: Daemons, folder: Path
) -> None:
    daemon = await daemons.start(home=folder.parent)
    (folder / "review.toml").write_text(REVIEW)
    told = await asyncio.gather(*(reloaded(daemon) for _ in range(6)))
    assert [each for each in told if "added" in each] == [{"added": ["review.toml"]}]
    assert set(await listed(daemon)) == {"review"}


async def test_more_files_than_are_read_are_told(
    daemons: Daemons, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (folder / f"{name}.toml").write_text("steps = []")
    daemon = await daemons.start(home=folder.parent)
    monkeypatch.setattr(files_module, "MOST_FILES", 1)
    (folder / "c.toml").write_text("steps = []")
    left = "is not read: 1 files are the most"
    assert await reloaded(daemon) == {
        "unchanged": ["a.toml"],
        "problems": [f"workflows/b.toml {left}", f"workflows/c.toml {left}"],
    }
    assert set(await listed(daemon)) == {"a", "b"}


async def test_a_home_without_the_folder_has_nothing_to_tell(
    daemon: RunningDaemon,
) -> None:
    assert await reloaded(daemon) == {}
    assert await health(daemon) == []


async def test_what_may_not_be_recorded_is_told_of_its_file(
    daemons: Daemons, folder: Path
) -> None:
    daemon = await daemons.start(home=folder.parent)
    recorded = Recorded(daemon.daemon.events, WorkflowEvent)
    recorded.refuses = (WorkflowEvent,)
    (folder / "a.toml").write_text(REVIEW)
    told = await reloaded(daemon)
    assert told == {"problems": ["workflows/a.toml: the book is closed"]}
    recorded.refuses = ()
    assert await reloaded(daemon) == {"added": ["a.toml"]}


async def test_a_workflow_that_goes_while_its_file_is_read_is_made_anew(
    daemon: RunningDaemon,
) -> None:
    workflows = orchestration_of(daemon.daemon).workflows
    known: Any = {"a.toml": {"id": "gone", "digest": "", "name": "a"}}
    load = _Load(workflows, Context(OPERATOR), known)
    await load.take(Found("a.toml", b"steps = []"))
    assert load.loaded["added"] == ["a.toml"]
    assert set(await listed(daemon)) == {"a"}


async def test_a_folder_that_cannot_be_read_is_told(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "workflows").mkdir(parents=True)
    (home / "workflows" / "a.toml").write_text("steps = []")
    daemon = await daemons.start(home=home)

    def refuse(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files_module, "names_in", refuse)
    told = await reloaded(daemon)
    assert told == {
        "problems": ["workflows: the folder cannot be read: Permission denied"]
    }
    assert set(await listed(daemon)) == {"a"}
