"""An application's folder: what is read of it, and what that changes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agenthost_desktop_shell.findings import CapabilityError
from agenthost_desktop_shell.lints import lint
from agenthost_desktop_shell.project import Project, find_projects, open_project
from agenthost_desktop_shell.terms import Caller

from .building import TITLE, capability

APPS = Path(__file__).parent / "apps"
MAIN = Caller("main")


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return path


def app(root: Path, files: dict[str, Any], conf: Any = None) -> Project:
    for name, value in {"tauri.conf.json": conf or {}, **files}.items():
        write(root / name, value)
    return open_project([root], host="linux")


def may(project: Project, command: str, caller: Caller = MAIN) -> bool:
    policy = project.policy("linux")
    return policy.decide(command, *caller, "linux").allowed


@pytest.mark.parametrize("folder", sorted(APPS.iterdir()), ids=lambda path: path.name)
def test_applications_are_clean_without_a_word_of_configuration(folder: Path) -> None:
    project = open_project([folder])
    report = project.report
    assert report.errors == report.strict_errors == report.warnings == ()
    assert lint(project) == []
    assert len(find_projects(APPS)) == 11


def test_a_denial_in_a_nested_file_counts(tmp_path: Path) -> None:
    grants = capability(permissions=["core:window:allow-title"])
    denies = capability(identifier="b", permissions=["core:window:deny-title"])
    files = {"capabilities/a.json": grants, "capabilities/sub/b.json": denies}
    assert not may(app(tmp_path, files), TITLE)
    kept = {"capabilities/a.json": grants, "capabilities/schemas/b.json": denies}
    assert may(app(tmp_path / "other", kept), TITLE)


def test_the_configuration_selects_by_name_and_inline(tmp_path: Path) -> None:
    inline = capability(identifier="i", permissions=["core:window:allow-theme"])
    visible = capability(identifier="two", permissions=["core:window:allow-is-visible"])
    files = {
        "capabilities/one.json": capability(permissions=["core:window:allow-title"]),
        "capabilities/two.json": visible,
    }
    conf = {"app": {"security": {"capabilities": ["a", inline]}}}
    project = app(tmp_path, files, conf)
    asked = ("core:window:title", "core:window:is-visible", "core:window:theme")
    assert [may(project, command) for command in asked] == [True, False, True]
    assert [found.rule for found in lint(project)] == ["not-selected"]


def test_a_selected_capability_that_no_file_has_is_an_error(tmp_path: Path) -> None:
    conf = {"app": {"security": {"capabilities": ["a", "gone"]}}}
    project = app(tmp_path, {"capabilities/a.json": capability()}, conf)
    (error,) = project.report.errors
    assert str(error).startswith(f"{tmp_path}/tauri.conf.json:")
    assert "'gone'" in str(error)
    assert error.line == 6


def test_a_sibling_of_the_configuration_counts_on_its_platform(tmp_path: Path) -> None:
    patch = {"app": {"security": {"capabilities": ["b"]}}, "identifier": "dev.l"}
    files = {
        "capabilities/a.json": capability(permissions=["core:window:allow-title"]),
        "capabilities/b.json": capability(identifier="b"),
        "tauri.linux.conf.json": patch,
    }
    project = app(tmp_path, files, {"identifier": "dev.x", "productName": "x"})
    assert not may(project, TITLE)
    assert project.policy("macOS").decide(TITLE, "main", platform="macOS").allowed
    assert project.config.identifier("linux") == "dev.l"
    assert project.config.identifier("windows") == "dev.x"


def test_the_framework_s_tables_replace_those_that_come_along() -> None:
    known = open_project([APPS / "panes"]).tables
    commands = {c for p in known.expand("dialog:allow-ask") for c in p.allow}
    assert commands == {"dialog:message"}
    older = open_project([APPS / "keeper"]).tables
    assert {c for p in older.expand("dialog:allow-ask") for c in p.allow} == {
        "dialog:ask"
    }


def test_framework_version_keeps_its_name_in_either_table() -> None:
    theirs = open_project([APPS / "versions"]).tables
    ours = open_project([APPS / "keeper"]).tables
    for known in (theirs, ours):
        assert known.command("core:app:tauri_version") == "core:app:framework-version"
        names = {"allow-framework-version", "allow-tauri-version"}
        assert {f"core:app:{name}" for name in names} <= known.identifiers


def test_own_commands_are_read_from_every_file_of_permissions() -> None:
    known = open_project([APPS / "written"]).tables
    assert [p.identifier for p in known.expand("notes")] == ["allow-save-note"]
    assert known.modules[""].descriptions["allow-greet"] == "Greets."


def test_an_own_permission_wins_over_what_the_last_build_wrote(tmp_path: Path) -> None:
    built = {"__app-acl__": {"permissions": {"allow-a": {"identifier": "allow-a"}}}}
    own = '[[permission]]\nidentifier = "allow-a"\ncommands.allow = ["new_one"]\n'
    files = {
        "capabilities/a.json": capability(permissions=["allow-a"]),
        "gen/schemas/acl-manifests.json": built,
        "permissions/a.toml": own,
    }
    assert may(app(tmp_path, files), "new_one")


def test_a_file_that_is_no_table_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "permissions" / "notes.txt", "x")
    with pytest.raises(CapabilityError, match=r"notes\.txt: is no permission table"):
        app(tmp_path, {"capabilities/a.json": capability()})


@pytest.mark.parametrize("value", [[], 5, {"fs": []}, {"fs": {"permissions": 3}}])
def test_a_malformed_table_of_the_framework_is_told(tmp_path: Path, value: Any) -> None:
    files = {"capabilities/a.json": capability()}
    with pytest.raises(CapabilityError, match=r"acl-manifests\.json: "):
        app(tmp_path, {**files, "gen/schemas/acl-manifests.json": value})


@pytest.mark.parametrize("name", ["cli", "nfc", "stronghold"])
def test_an_unknown_module_names_the_way_out(tmp_path: Path, name: str) -> None:
    grants = capability(permissions=[f"{name}:default"])
    (error,) = app(tmp_path, {"capabilities/a.json": grants}).report.errors
    assert "--manifests" in error.message
    assert "did you mean" not in error.message


def test_what_another_platform_has_is_a_warning(tmp_path: Path) -> None:
    grants = capability(permissions=["nfc:default"], platforms=["android", "iOS"])
    report = app(tmp_path, {"capabilities/a.json": grants}).report
    assert report.valid
    assert "unknown module 'nfc'" in report.warnings[0].message
    here = {**grants, "platforms": ["android", "linux"]}
    assert not app(tmp_path, {"capabilities/a.json": here}).report.valid


def test_own_commands_without_a_table_are_open_to_local_pages(tmp_path: Path) -> None:
    project = app(tmp_path, {"capabilities/a.json": capability()})
    assert may(project, "greet")
    assert not may(project, "greet", Caller("main", None, "https://a.dev"))
    assert not may(open_project([APPS / "commands"]), "other")


def test_a_folder_without_capability_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="no capability files in"):
        open_project([tmp_path])


def test_links_are_opened_as_the_configuration_says() -> None:
    project = open_project([APPS / "runner"])
    policy, opens = project.policy("linux"), project.config.opens("linux")
    yes = policy.decide_open("https://example.com/x", MAIN, "linux", opens)
    no = policy.decide_open("https://other.com/x", MAIN, "linux", opens)
    assert (yes.allowed, no.allowed) == (True, False)


def test_an_application_is_found_from_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(APPS / "panes" / "src-tauri" / "capabilities")
    assert open_project([Path()]).report.valid
    assert open_project([Path("default.json")]).report.valid


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{a: 1, a: 2}", ":1: the key 'a' stands twice"),
        ("{a: 1,\n\n ?}", ":3: is not JSON5"),
        ("[" * 100, ":1: is not JSON5|nested deeper"),
        ("", "is not JSON5"),
        ("{a: NaN}", "not a finite number"),
    ],
)
def test_malformed_json5_is_told_with_its_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = write(tmp_path / "x.json5", text)
    told = str(open_project([file]).report.errors[0])
    assert re.search(problem, told), told


def test_findings_in_json5_and_toml_arrays_have_their_lines(tmp_path: Path) -> None:
    json5 = "{\n// why\nidentifier: 'a', windows: ['main'],\npermissions: [\n'x:y']}"
    toml = 'identifier = "b"\npermissions = [\n "core:default",\n\n "x:y",\n]\n'
    files = [write(tmp_path / "a.json5", json5), write(tmp_path / "b.toml", toml)]
    lines = [error.line for error in open_project(files).report.errors]
    assert lines == [5, 5]


def test_json_with_comments_is_told_what_it_is(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", '{"identifier": "a", "permissions": [],}')
    assert "name it .json5" in str(open_project([file]).report.errors[0])
