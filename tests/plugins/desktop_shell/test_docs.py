"""The guide's examples do what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from pkgutil import iter_modules

import agenthost_desktop_shell.plugin
import pytest
from agenthost_desktop_shell.folders import variables
from agenthost_desktop_shell.framework import read_tables
from agenthost_desktop_shell.policy import Policy
from agenthost_desktop_shell.tables import Tables
from agenthost_desktop_shell.terms import Caller, ShellCall

from .building import LINUX, report, tables

DOCS = Path(__file__).parents[3] / "docs" / "desktop-capabilities.md"
GUIDE = DOCS.read_text("utf-8")


def example(language: str, having: str = "") -> str:
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return next(block for block in blocks if having in block)


def test_the_example_file_is_valid_and_runs_what_the_guide_says() -> None:
    policy = Policy(report(json.loads(example("json"))).checked(), tables())
    call = ShellCall("log", ["log", "-n5"])
    decision = policy.decide_shell(call, Caller("main"), LINUX)
    assert decision.argv == ("git", "log", "-n5")
    assert decision.reason in GUIDE
    assert (
        policy.decide("core:window:set-title", "main", platform="linux").reason in GUIDE
    )


def test_the_example_manifest_is_valid(tmp_path: Path) -> None:
    (tmp_path / "greet.toml").write_text(example("toml"))
    (tmp_path / "notes.json").write_text(example("json", '"notes"'))
    known = Tables.builtin(*read_tables([tmp_path]))
    names = [p.identifier for p in known.expand("notes:all")]
    assert names[:2] == ["notes:allow-read", "core:event:allow-listen"]
    assert known.expand("friendly")[0].allow == ("greet",)
    assert known.expand("notes:own-files")[0].platforms == ("linux",)


def test_the_guide_s_program_runs_and_its_names_are_the_package_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src-tauri" / "capabilities").mkdir(parents=True)
    (tmp_path / "src-tauri" / "capabilities" / "a.json").write_text(example("json"))
    exec(compile(example("python"), "guide", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.startswith("True core:window:set-title is allowed by ")
    assert "core:window:allow-set-title" in shown.splitlines()[-1]
    modules = {m.name for m in iter_modules(agenthost_desktop_shell.__path__)}
    assert not modules & {*agenthost_desktop_shell.__all__}
    for name in agenthost_desktop_shell.__all__:
        assert getattr(agenthost_desktop_shell, name)
        assert f"`{name}`" in GUIDE, name


def test_the_guide_says_of_which_version_each_plugin_s_table_is() -> None:
    for name, known in tables().modules.items():
        package, _, version = known.source.partition(" ")
        row = f"`{name}` | {version} |"
        assert (row if package.startswith("@") else known.source) in GUIDE, name


def test_the_guide_names_every_variable_and_module() -> None:
    assert all(f"`${name}`" in GUIDE for name in variables())
    assert all(f"`{name.removeprefix('core:')}`" in GUIDE for name in tables().modules)


def test_register_routes_offers_the_routes_of_the_guide() -> None:
    groups = [late.load() for late in agenthost_desktop_shell.plugin.register_routes()]
    paths = {route.path for group in groups for route in group.routes}
    sockets = {route.path for group in groups for route in group.sockets}
    assert sockets == {"/api/desktop/ipc"}
    for path in paths | sockets:
        assert path.rpartition("/")[2] in GUIDE.replace("<id>", "<token_id>")
