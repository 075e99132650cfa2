"""``agenthost capability`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import agenthost_desktop_shell.plugin
import pytest
from agenthost_desktop_shell.commands import capability as group
from click.testing import CliRunner, Result

from .building import capability, own_table


def call(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "main.json"
    path.write_text(json.dumps(capability(permissions=["core:window:allow-title"])))
    return path


def write(path: Path, **fields: Any) -> Path:
    path.write_text(json.dumps(capability(**fields), indent=1))
    return path


def test_register_command_offers_the_group() -> None:
    (spec,) = agenthost_desktop_shell.plugin.register_command()
    assert spec.command is group


def test_validate_counts_what_is_valid(file: Path) -> None:
    result = call("validate", file)
    assert (result.exit_code, result.output) == (0, "1 capability is valid\n")


def test_validate_says_what_is_wrong_where(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", permissions=["shell:alow-open"])
    result = call("validate", path)
    assert result.exit_code == 1
    assert result.output.startswith(
        f"{path}:7: capability 'a', permissions[0]: unknown"
    )
    shown = json.loads(call("validate", path, "--json").output)
    assert shown["valid"] is False
    assert shown["errors"][0]["line"] == 7


def test_validate_takes_folders_and_finds_names_taken_twice(tmp_path: Path) -> None:
    write(tmp_path / "a.json")
    (tmp_path / "b.toml").write_text('identifier = "a"\npermissions = []\n')
    result = call("validate", tmp_path)
    assert result.exit_code == 1
    assert f"already exists in {tmp_path}/a.json" in result.output


def test_lenient_says_what_strict_refuses(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", permissions=["shell:default"] * 2)
    result = call("validate", path, "--mode", "lenient")
    assert result.exit_code == 0
    assert "(refused by strict validation only)" in result.output


def test_resolve_writes_the_resolved_form(file: Path) -> None:
    form = json.loads(call("resolve", file, "--platform", "windows").output)
    assert form["platform"] == "windows"
    assert list(form["allowed"]) == ["core:window:title"]


def test_explain_says_why(file: Path) -> None:
    yes = call("explain", "core:window:title", file, "--window", "main")
    assert (yes.exit_code, yes.output.partition(":")[0]) == (0, "allowed")
    no = call("explain", "core:window:title", file, "--window", "other")
    assert no.exit_code == 1
    assert "refused: nearest miss: capability 'a'" in no.output


def test_explain_shows_the_argv(tmp_path: Path) -> None:
    entry = {"name": "git", "cmd": "git", "args": True}
    scope = {"identifier": "shell:allow-execute", "allow": [entry]}
    path = write(tmp_path / "a.json", permissions=[scope])
    program = ["--name", "git", "--arg", "log", "--window", "main"]
    result = call("explain", "shell:execute", path, *program)
    assert 'argv: ["git", "log"]' in result.output


def test_explain_of_an_invalid_file_shows_its_findings(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", permissions=["nope:x"])
    result = call("explain", "core:window:title", path, "--window", "main")
    assert result.exit_code == 2
    assert "unknown module 'nope'" in result.output


def test_schema_writes_the_schema_with_further_manifests(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text(own_table("greet"))
    plain = json.loads(call("schema").output)
    more = json.loads(call("schema", "--manifests", tmp_path).output)
    assert plain["title"] == "CapabilityFile"
    before, after = (
        {each["const"] for each in written["definitions"]["Identifier"]["anyOf"]}
        for written in (plain, more)
    )
    added = after - before
    assert added == {"allow-greet", "default"}


def test_a_broken_manifest_is_told(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text("permission = 5\n")
    result = call("schema", "--manifests", tmp_path)
    assert result.exit_code == 2
    assert "app.toml" in result.output


def test_diff_says_what_comes_and_goes(file: Path, tmp_path: Path) -> None:
    title, close = "core:window:allow-title", "core:window:allow-close"
    new = write(tmp_path / "new.json", permissions=[close], platforms=["linux"])
    result = call("diff", file, new)
    assert result.output.splitlines() == [
        "widened:",
        "+ core:window:close to window 'main' from local on linux",
        "narrowed:",
        "- core:window:title to window 'main' from local",
    ]
    same = write(tmp_path / "same.json", permissions=[title])
    assert call("diff", file, same).output == ""
    changes = json.loads(call("diff", file, new, "--json").output)
    assert [change["allowed"] for change in changes] == [True, False]
