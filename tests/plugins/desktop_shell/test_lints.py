"""Lints: each has a file that it tells, and a twin that it has nothing to say of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agenthost_desktop_shell.lints import lint
from agenthost_desktop_shell.project import open_project
from agenthost_desktop_shell.rules import RULES
from agenthost_desktop_shell.sources import handlers

from .building import capability
from .test_project import app, write

EXECUTE = "shell:allow-execute"
CAP = "capabilities/a.json"
WINDOWS: Any = {"app": {"windows": [{"label": "main"}]}}
OWN = '[[permission]]\nidentifier = "allow-greet"\ncommands.allow = ["greet"]\n'
HANDLER = (
    "fn run() { generate_handler![\n  greet,\n  #[cfg(desktop)] deep::save, // x\n] }"
)


def runs(permission: str = EXECUTE, **entry: Any) -> Any:
    program = {"name": "p", "cmd": "p", **entry}
    return capability(permissions=[{"identifier": permission, "allow": [program]}])


def denying(window: str) -> dict[str, Any]:
    grants = capability(permissions=["core:window:allow-title"])
    denies = {"identifier": "b", "windows": [window]}
    permission = {"permissions": ["core:window:deny-title"]}
    return {CAP: grants, "capabilities/b.json": {**denies, **permission}}


def remote(url: str) -> dict[str, Any]:
    return {CAP: capability(remote={"urls": [url]})}


def page(url: str) -> tuple[dict[str, Any], Any]:
    return {CAP: capability()}, {"build": {"frontendDist": url}}


def selecting(name: str) -> tuple[dict[str, Any], Any]:
    files = {CAP: capability(), "capabilities/b.json": capability(identifier="b")}
    return files, {"app": {"security": {"capabilities": ["a", *name]}}}


def own(rust: str, extra: str = "") -> dict[str, Any]:
    files = {CAP: capability(), "src/lib.rs": rust}
    return {**files, "permissions/own.toml": OWN + extra}


SAVES = '[[permission]]\nidentifier = "allow-save"\ncommands.allow = ["save"]\n'
CASES: list[tuple[str, Any, Any]] = [
    ("unknown-field", capability(window=["main"]), capability()),
    ("grants-nothing", capability(windows=None), capability(windows=["main"])),
    ("grants-nothing", capability(local=False), capability(local=True)),
    ("grants-nothing", capability(platforms=[]), capability(platforms=["linux"])),
    (
        "braces-in-label",
        capability(windows=["{main,settings}"]),
        capability(windows=["main", "settings"]),
    ),
    (
        "no-such-window",
        ({CAP: capability(windows=["mian"])}, WINDOWS),
        ({CAP: capability(windows=["ma*"])}, WINDOWS),
    ),
    ("deny-elsewhere", (denying("popup"), {}), (denying("main"), {})),
    ("idle-scope", runs("shell:allow-open"), runs()),
    (
        "other-command",
        capability(
            permissions=[*runs("shell:allow-spawn")["permissions"], EXECUTE],
        ),
        runs("shell:allow-spawn"),
    ),
    ("no-scope", capability(permissions=[EXECUTE]), runs()),
    ("literal-path", runs(cmd="$HOMEDIR/x"), runs(cmd="$HOME/x")),
    ("literal-path", runs(cmd="$HOME/../x"), runs(cmd="$HOME/y..x")),
    ("literal-path", runs(cmd="~/x"), runs(cmd="/x")),
    ("empty-program", runs(cmd=""), runs(cmd="x")),
    ("open-interpreter", runs(cmd="sh", args=True), runs(cmd="sh", args=["-c", "ls"])),
    (
        "open-interpreter",
        runs(cmd="C:\\Windows\\cmd.EXE", args=["/c", {"validator": ".*"}]),
        runs(cmd="C:\\Windows\\cmd.EXE", args=["/c", {"validator": "[a-z]+"}]),
    ),
    ("open-interpreter", runs(cmd="powershell", args=True), runs(cmd="git", args=True)),
    ("wide-remote", (remote("https://*"), {}), (remote("https://*.a.dev"), {})),
    ("wide-remote", (remote("https://*.com"), {}), (remote("https://a.com"), {})),
    ("wide-remote", (remote("http://a.dev"), {}), (remote("https://a.dev/*"), {})),
    (
        "command-not-listed",
        (own(HANDLER), {}),
        (own(HANDLER, SAVES), {}),
    ),
    (
        "command-stale",
        (own("generate_handler![greet]", SAVES), {}),
        (own(HANDLER, SAVES), {}),
    ),
    ("loopback-page", page("http://127.0.0.1:3000"), page("../dist")),
    ("loopback-page", page("http://localhost"), page("http://localhost.evil.dev")),
    ("not-selected", selecting(""), selecting("b")),
]


def told(folder: Path, case: Any) -> list[Any]:
    files, conf = case if isinstance(case, tuple) else ({CAP: case}, {})
    project = app(folder, files, conf)
    assert project.report.valid, project.report.errors
    return lint(project)


@pytest.mark.parametrize(
    ("rule", "told_of", "silent"),
    CASES,
    ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)],
)
def test_a_lint_tells_its_case_alone_and_not_its_twin(
    tmp_path: Path, rule: str, told_of: Any, silent: Any
) -> None:
    found = told(tmp_path / "a", told_of)
    assert [finding.rule for finding in found] == [rule]
    assert found[0].file.startswith(str(tmp_path))
    assert found[0].line or rule == "command-stale"
    assert found[0].message.endswith(RULES[rule].remedy)
    assert told(tmp_path / "b", silent) == []


def test_every_rule_of_the_lints_has_a_case() -> None:
    reports = {"invalid", "strict-only", "other-platform"}
    assert {case[0] for case in CASES} == RULES.keys() - reports


def test_a_lint_can_be_ignored_for_all_or_for_one_capability(tmp_path: Path) -> None:
    for name in ("a", "b"):
        lonely = capability(identifier=name, windows=None)
        write(tmp_path / f"{name}.json", lonely)
    project = open_project([tmp_path])
    assert len(lint(project)) == 2
    assert lint(project, frozenset({"grants-nothing"})) == []
    (left,) = lint(project, frozenset({"grants-nothing=a"}))
    assert left.capability == "b"


def test_a_lint_names_the_line(tmp_path: Path) -> None:
    text = json.dumps(runs(cmd="~/x"), indent=1)
    file = write(tmp_path / "a.json", text)
    (found,) = lint(open_project([file]))
    place = text.splitlines().index('     "cmd": "~/x"') + 1
    assert (found.file, found.line) == (str(file), place)


def test_handlers_are_read_past_comments_and_attributes(tmp_path: Path) -> None:
    text = "// generate_handler![no]\n/* generate_handler![no2] */\n" + HANDLER
    write(tmp_path / "src" / "deep" / "lib.rs", text)
    write(tmp_path / "src" / "odd.rs", "generate_handler![")
    found = [(handler.command, handler.line) for handler in handlers(tmp_path)]
    assert found == [("greet", 4), ("save", 5)]
