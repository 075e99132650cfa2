"""Templates: what is shipped is sound, what the operator adds is overlaid."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from agenthost import Conflict, InvalidInput, NotFound
from agenthost.testing import Daemons
from agenthost_templates.catalogue import Catalogue, all_templates, renamed, template

TIERS = {"frontier": 3, "smart": 8, "balanced": 11, "fast": 8}
TOOLS = {
    *("file_read", "file_write", "file_list", "web_fetch", "web_search", "shell_exec"),
    *("kv_get", "kv_set", "agent_call", "agent_spawn", "agent_list", "agent_kill"),
}
OWN = 'name = "mine"\ndescription = "my own"\n'


def written(home: Path, name: str, text: str) -> Path:
    file = home / "agents" / name / "agent.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_thirty_templates_are_shipped_and_each_is_a_whole_briefing(
    tmp_path: Path,
) -> None:
    tiers = dict.fromkeys(TIERS, 0)
    for found in all_templates(tmp_path):
        assert found.manifest is not None, found.fault
        manifest = found.manifest
        assert manifest.name == found.name
        assert found.path == f"builtin:{found.name}"
        assert 150 <= len(manifest.model.system_prompt.split()) <= 400, found.name
        assert set(manifest.capabilities.tools) <= TOOLS, found.name
        tiers[str(manifest.metadata["tier"])] += 1
    assert tiers == TIERS


def test_no_shipped_template_may_run_any_command_it_likes(tmp_path: Path) -> None:
    for found in all_templates(tmp_path):
        document = tomllib.loads(found.text)
        shell = document["capabilities"].get("shell", [])
        assert not [line for line in shell if "*" in line], found.name
        assert bool(shell) == ("shell_exec" in document["capabilities"]["tools"])


def test_an_own_file_takes_the_place_of_a_shipped_one(tmp_path: Path) -> None:
    written(tmp_path, "coder", OWN)
    written(tmp_path, "mine", OWN)
    found = {each.name: each for each in all_templates(tmp_path)}
    assert len(found) == 31
    assert found["coder"].path == "agents/coder/agent.toml"
    assert template(tmp_path, "coder").text == OWN


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"name = ", "line 1"),
        (b"name = 5\n", "name: "),
        (b"\xff\xfe", "UTF-8"),
        (b"#" * 300_000, "larger than"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault_and_the_others_stay(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    written(tmp_path, "bad", "").write_bytes(content)
    found = {each.name: each for each in all_templates(tmp_path)}
    assert len(found) == 31
    assert fault in found["bad"].fault
    assert str(tmp_path) not in found["bad"].fault
    with pytest.raises(Conflict, match="damaged"):
        template(tmp_path, "bad")


def test_a_pipe_in_place_of_a_file_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "pipe"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "agent.toml")
    assert len(all_templates(tmp_path)) == 30


@pytest.mark.parametrize("name", ["..", "../x", "a/b", ".hidden", "", "x" * 65, "a\n"])
def test_no_name_leaves_the_folder_of_templates(tmp_path: Path, name: str) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agent.toml").write_text(OWN)
    with pytest.raises(NotFound):
        template(tmp_path, name)


def test_only_the_name_changes_when_a_template_is_renamed() -> None:
    text = 'a = """\n#"""\nname = "x" # one\n[model]\nname = "kept"\n'
    assert tomllib.loads(renamed(text, 'q"\n')) == tomllib.loads(text) | {
        "name": 'q"\n'
    }
    with pytest.raises(InvalidInput):
        renamed('a = """\nname = 1\n"""\nname = "x"\n', "y")


async def test_templates_are_served_and_agents_made_of_them(daemons: Daemons) -> None:
    daemon = await daemons.start()
    written(daemon.daemon.home, "bad", "name = ")
    listed = (await daemon.http.get("/api/templates")).json()
    assert listed["total"] == len(listed["templates"]) == 31
    assert [row["name"] for row in listed["templates"] if "fault" in row] == ["bad"]
    shown = (await daemon.http.get("/api/templates/coder")).json()
    assert {*shown["manifest"]} == {
        *("name", "description", "module", "tags", "model", "capabilities")
    }
    assert tomllib.loads(shown["manifest_toml"])["name"] == "coder"
    # Nothing starts because a file exists.
    assert (await daemon.http.get("/api/agents")).json() == []
    path = "/api/templates/coder/agents"
    made = await daemon.http.post(path, json={"name": "my-coder"})
    assert made.status_code == 201
    assert not [each for each in made.json()["warnings"] if "unknown key" in each]
    assert (await daemon.http.post(path, json={"name": "my-coder"})).status_code == 409
    assert (await daemon.http.post(path, json={"name": "no\nname"})).status_code == 400
    assert (await daemon.http.post(path, json={})).json()["name"] == "coder"
    for unknown in ("nobody", "..%2fcoder", "bad%00"):
        answer = await daemon.http.get(f"/api/templates/{unknown}")
        assert answer.status_code == 404
    assert (await daemon.http.get("/api/templates/bad")).status_code == 409
    profiles = (await daemon.http.get("/api/profiles")).json()["profiles"]
    assert len(profiles) == 7
    assert {*profiles[0]} == {"name", "tier", "description", "tools"}


async def test_an_agent_is_made_of_a_template_where_agents_are_made(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    written(daemon.daemon.home, "mine", OWN)
    written(daemon.daemon.home, "bad", "name = ")

    async def made(**body: str) -> tuple[int, dict[str, Any]]:
        answer = await daemon.http.post("/api/agents", json=body)
        return answer.status_code, answer.json()

    assert (await made(template="coder"))[1]["name"] == "coder"
    status, ada = await made(template="coder", name="ada")
    assert (status, ada["name"]) == (201, "ada")
    shown = (await daemon.http.get(f"/api/agents/{ada['agent_id']}")).json()
    coder = tomllib.loads(template(daemon.daemon.home, "coder").text)
    assert shown["description"] == coder["description"]
    assert shown["system_prompt"] == coder["model"]["system_prompt"]
    # An operator's own goes through the same door.
    assert (await made(template="mine", name="own"))[0] == 201
    before = (await daemon.http.get("/api/agents")).json()
    for body, wanted, words in (
        ({"template": "coder"}, 409, "coder"),
        ({"template": "nobody"}, 404, "nobody"),
        ({"template": "bad"}, 409, "damaged"),
        ({"template": "../coder"}, 400, "template"),
        ({"template": "coder", "name": "no\nname"}, 400, "name"),
        ({"template": "coder", "name": "\u00e9"}, 400, "name"),
        ({"template": "coder", "manifest_toml": OWN}, 400, "either"),
        ({"name": "ada"}, 400, "either"),
        ({"manifest_toml": OWN, "name": "x"}, 400, "name goes with template"),
    ):
        status, told = await made(**body)
        assert status == wanted, (body, told)
        assert words in told["error"], (body, told)
    assert (await daemon.http.get("/api/agents")).json() == before


async def test_without_templates_the_refusal_says_what_to_enable(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config='[plugins]\ndisable = ["plugin:templates"]\n')
    answer = await daemon.http.post("/api/agents", json={"template": "coder"})
    assert answer.status_code == 503
    assert "enable plugin:templates" in answer.json()["error"]


@pytest.mark.conformance
async def test_every_shipped_template_becomes_an_agent(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[rate_limit]\nenabled = false\n")
    for row in (await daemon.http.get("/api/templates")).json()["templates"]:
        path = f"/api/templates/{row['name']}/agents"
        made = await daemon.http.post(path, json={})
        assert made.status_code == 201, made.text
        assert not [each for each in made.json()["warnings"] if "unknown key" in each]


def test_a_catalogue_reads_what_has_changed_and_nothing_else(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    shipped = catalogue.listed()
    assert catalogue.listed() is shipped
    file = tmp_path / "agents" / "clerk" / "agent.toml"
    file.parent.mkdir(parents=True)
    file.write_text('name = "clerk"')
    (found,) = [each for each in catalogue.listed() if each.name == "clerk"]
    assert found.text == 'name = "clerk"'
    file.write_text('name = "clerk"\ndescription = "Files"')
    (found,) = [each for each in catalogue.listed() if each.name == "clerk"]
    assert found.manifest is not None
    assert found.manifest.description == "Files"
    file.unlink()
    assert [each.name for each in catalogue.listed()] == [t.name for t in shipped]
