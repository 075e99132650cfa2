"""``agenthost capability check``, ``matrix`` and ``diff --git``: what people see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from agenthost_desktop_shell.commands import capability as group
from click.testing import CliRunner, Result

from .building import capability
from .test_lints import EXECUTE
from .test_project import APPS, write

GOLDEN = Path(__file__).parent / "golden"
ENTRY = {"name": "s", "cmd": "sh", "args": True}
WRONG = [
    capability(permissions=["core:default", "shell:alow-open"]),
    capability(identifier="b", permissions=[{"identifier": EXECUTE, "allow": [ENTRY]}]),
    capability(identifier="c", windows=None, permissions=["core:default"] * 2),
    capability(identifier="d", permissions=["nfc:default"], platforms=["iOS"]),
]


def call(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(group, [str(a) for a in arguments], input=given)


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder ``src-tauri`` with a mistake of each severity, worked in."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "src-tauri" / "tauri.conf.json", {"identifier": "dev.x"})
    return write(tmp_path / "src-tauri" / "capabilities" / "all.json", WRONG)


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_findings_are_written_so(wrong: Path, form: str) -> None:
    result = call("check", "--format", form)
    assert result.exit_code == 1
    assert result.output == (GOLDEN / f"check.{form}").read_text("utf-8")
    assert wrong.is_file()


def test_sarif_has_what_its_schema_requires(wrong: Path) -> None:
    text = {"type": "object", "required": ["text"]}
    place = {
        "type": "object",
        "required": ["artifactLocation"],
        "properties": {
            "artifactLocation": {
                "required": ["uri"],
                "properties": {"uri": {"pattern": r"^[^\\]+$"}},
            },
            "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
        },
    }
    result = {
        "required": ["message"],
        "properties": {
            "message": text,
            "level": {"enum": ["none", "note", "warning", "error"]},
            "locations": {"items": {"properties": {"physicalLocation": place}}},
        },
    }
    written = json.loads(call("check", "--format", "sarif").output)
    assert (written["version"], len(written["runs"])) == ("2.1.0", 1)
    (run,) = written["runs"]
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(names)) == len(names)
    assert {found["ruleId"] for found in run["results"]} <= {*names}
    for found in run["results"]:
        jsonschema.validate(found, result)
    assert wrong.is_file()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "warning", "--ignore", "grants-nothing=a"), 0),
        (("--mode", "strict", "--fail-on", "note", "--ignore", "grants-nothing"), 0),
        (("--ignore", "nonsense"), 2),
    ],
)
def test_the_exit_code_says_how_grave_it_is(
    tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    file = write(tmp_path / "a.json", capability(windows=None))
    assert call("check", file, *options).exit_code == code


def test_all_applications_of_a_repository_are_checked(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / "src-tauri" / "tauri.conf.json", {})
        bad = capability(permissions=["x:y"])
        write(tmp_path / name / "src-tauri" / "capabilities" / "a.json", bad)
    lines = call("check", tmp_path).output.splitlines()
    assert [line.partition("/src-tauri")[0] for line in lines] == [
        f"{tmp_path}/one",
        f"{tmp_path}/two",
    ]
    assert call("check", APPS).exit_code == 0


@pytest.mark.parametrize("command", ["check", "validate"])
def test_nothing_to_check_is_no_success(tmp_path: Path, command: str) -> None:
    result = call(command, tmp_path)
    assert result.exit_code == 2
    assert "no capability files in" in result.output


def test_standard_input_is_a_file() -> None:
    bad = json.dumps(capability(permissions=["x:y"]))
    assert call("check", "-", given=json.dumps(capability())).exit_code == 0
    result = call("check", "-", given=bad)
    assert result.exit_code == 1
    assert result.output.startswith("-:1: capability 'a'")


def test_the_matrix_shows_who_may_call_what(tmp_path: Path) -> None:
    first = capability(permissions=["core:window:allow-title"])
    grants = {
        **capability(identifier="b", permissions=["core:window:allow-close"]),
        "windows": ["main", "pop-*"],
        "remote": {"urls": ["https://a.dev"]},
    }
    denied = capability(
        identifier="c", permissions=["core:window:allow-show", "core:window:deny-show"]
    )
    file = write(tmp_path / "a.json", [first, grants, denied])
    assert call("matrix", file).output.splitlines() == [
        "                   main  pop-*",
        "core:window:close  lr    lr",
        "core:window:title  l     -",
    ]
    rows = json.loads(call("matrix", file, "--json").output)
    assert rows["core:window:close"]["main"] == ["local", "https://a.dev"]


def test_explain_answers_about_links_and_in_json() -> None:
    asked = ("explain", "shell:open", APPS / "runner", "--window", "main", "--json")
    yes = call(*asked, "--path", "https://example.com/x")
    no = call(*asked, "--path", "https://other.dev")
    assert [json.loads(r.output)["allowed"] for r in (yes, no)] == [True, False]
    assert (yes.exit_code, no.exit_code) == (0, 1)


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.dev")
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose last commit lets ``sh`` run and a remote page in."""
    folder = tmp_path / "repository"
    file = folder / "src-tauri" / "capabilities" / "a.json"
    titles = ["core:window:allow-title"]
    write(file, capability(permissions=[*titles, "core:window:allow-show"]))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    scope = {"identifier": EXECUTE, "allow": [ENTRY]}
    remote = {"urls": ["https://a.dev"]}
    more = ["core:window:allow-close", "core:window:allow-hide"]
    here = capability(permissions=[*titles, *more, scope])
    there = capability(identifier="r", local=False, remote=remote, permissions=titles)
    write(file, [here, there])
    git(folder, "commit", "-qam", "two")
    return folder


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_diff_of_revisions_tells_the_riskiest_first(
    repository: Path, form: str
) -> None:
    result = call("diff", "--git", "HEAD~1..HEAD", "--format", form, repository)
    assert result.output == (GOLDEN / f"diff.{form}").read_text("utf-8")
    assert result.exit_code == 0


def test_a_diff_can_refuse_what_is_widened(repository: Path) -> None:
    wider = ("diff", "--git", "HEAD~1..HEAD", repository, "--fail-on")
    same = ("diff", "--git", "HEAD", repository, "--fail-on", "widened")
    narrower = ("diff", "--git", "HEAD..HEAD~1", repository, "--fail-on")
    codes = [
        call(*wider, "widened").exit_code,
        call(*wider, "high-risk").exit_code,
        call(*narrower, "high-risk").exit_code,
        call(*same).exit_code,
    ]
    assert codes == [1, 1, 0, 0]


@pytest.mark.parametrize("revision", ["--output=x..HEAD", "nonsense..HEAD", "HEAD^{"])
def test_a_revision_that_is_none_is_refused(repository: Path, revision: str) -> None:
    result = call("diff", f"--git={revision}", repository)
    assert result.exit_code == 2
    assert not (repository / "x").exists()


def test_the_schema_describes_the_application_s_permissions() -> None:
    written: Any = json.loads(call("schema", APPS / "keeper").output)
    described = written["definitions"]["Identifier"]["anyOf"]
    texts = {item["const"]: item["description"] for item in described[1:]}
    assert texts["log:allow-log"] == "allow-log of the plugin."


def test_the_commands_need_no_kernel() -> None:
    code = (
        "import sys, agenthost_desktop_shell.commands as c\n"
        "c.capability(['check', sys.argv[1]], standalone_mode=False)\n"
    )
    seen = "assert 'agenthost' not in sys.modules, 'the kernel was imported'"
    program = f"import sys\ntry:\n exec({code!r})\nexcept SystemExit: pass\n{seen}"
    subprocess.run([sys.executable, "-c", program, APPS / "files"], check=True)
