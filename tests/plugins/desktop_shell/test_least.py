"""``capability suggest``: what was asked for stays allowed, and nothing else grows."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from agenthost_desktop_shell.diff import compare
from agenthost_desktop_shell.least import Ask, suggest
from agenthost_desktop_shell.project import Project, open_project
from agenthost_desktop_shell.terms import Caller, Mode
from hypothesis import given, settings
from hypothesis import strategies as st

from .building import capability, manifest
from .test_check import GOLDEN, call
from .test_project import app, write

MAIN = Caller("main")
LENIENT = Mode.LENIENT
TITLE, CLOSE = "core:window:title", "core:window:close"
EVENTS = [f"core:event:{name}" for name in ("emit", "emit-to", "listen", "unlisten")]
GIT: Any = {"name": "git", "cmd": "git", "args": ["log"]}
LS: Any = {"name": "ls", "cmd": "ls"}
EXECUTE = "shell:allow-execute"


def asks(*commands: str, caller: Caller = MAIN, program: str = "") -> list[Ask]:
    return [Ask(caller, command, "linux", program) for command in commands]


def project(folder: Path, *capabilities: Any) -> Project:
    return open_project([write(folder / "a.json", list(capabilities))], mode=LENIENT)


def left(folder: Path, capabilities: list[Any], asked: list[Ask]) -> list[list[Any]]:
    found = suggest(project(folder, *capabilities), asked)
    return [list(each.permissions) for each in found.capabilities]


@pytest.mark.parametrize(
    ("permissions", "asked", "needed"),
    [
        (["core:default"], [TITLE], ["core:window:allow-title"]),
        (["core:default"], EVENTS, ["core:event:default"]),
        (["core:default"], EVENTS[1:], None),
        (["core:default", "core:window:allow-close"], [CLOSE], None),
        (["dialog:default"], ["dialog:ask"], ["dialog:allow-ask"]),
        (["core:window:allow-title", "core:window:deny-show"], [TITLE], None),
        (["core:window:allow-title", "dialog:deny-ask"], [TITLE], None),
        (["core:default", "dialog:default"], ["fs:read-file"], []),
    ],
)
def test_a_set_becomes_what_was_asked_for(
    tmp_path: Path, permissions: list[str], asked: list[str], needed: list[str] | None
) -> None:
    one_each = [c.rpartition(":")[0] + ":allow-" + c.rpartition(":")[2] for c in asked]
    denials = [name for name in permissions if ":deny-" in name]
    (found,) = left(tmp_path, [capability(permissions=permissions)], asks(*asked))
    wanted = needed if needed is not None else [*one_each, *denials]
    assert sorted(found) == sorted(wanted)


def test_of_two_capabilities_that_allow_a_command_one_is_needed(tmp_path: Path) -> None:
    both = [
        capability(identifier=name, permissions=["core:window:allow-title"])
        for name in "ab"
    ]
    assert left(tmp_path, both, asks(TITLE)) == [["core:window:allow-title"], []]


def test_a_scope_of_the_shell_keeps_the_programs_that_ran(tmp_path: Path) -> None:
    scope = [capability(permissions=[{"identifier": EXECUTE, "allow": [GIT, LS]}])]
    ran = asks("plugin:shell|execute", program="git")
    assert left(tmp_path, scope, ran) == [[{"identifier": EXECUTE, "allow": [GIT]}]]
    (unused,) = suggest(project(tmp_path, *scope), ran).capabilities
    assert unused.unused == {EXECUTE: ("ls",)}
    assert left(tmp_path, scope, asks("shell:execute", program="rm")) == [[]]


def test_scopes_that_add_up_are_all_kept(tmp_path: Path) -> None:
    first, second = (
        {"identifier": "core:window:allow-title", "allow": [word]} for word in "xy"
    )
    both = [
        capability(identifier="a", permissions=[first]),
        capability(identifier="b", windows=["other"], permissions=[second]),
    ]
    assert left(tmp_path, both, asks(TITLE)) == [[first], [second]]


def test_a_grant_without_a_scope_goes_where_one_with_a_scope_is(tmp_path: Path) -> None:
    name = "core:window:allow-title"
    scoped = {"identifier": name, "allow": ["x"]}
    both = [capability(permissions=[name, scoped])]
    assert left(tmp_path, both, asks(TITLE)) == [[scoped]]


def test_what_counts_on_another_platform_stays_as_it_is(tmp_path: Path) -> None:
    there = capability(permissions=["core:default"], platforms=["android"])
    (found,) = suggest(project(tmp_path, there), asks(TITLE)).capabilities
    assert (found.judged, found.permissions) == (False, ("core:default",))
    (ask,) = suggest(project(tmp_path, there), asks(TITLE)).refused
    assert ask.command == TITLE


READ_HOME = {
    "identifier": "read-home",
    "commands": {"allow": ["read"]},
    "scope": {"allow": ["$HOME/**"]},
}
TABLE = {
    "notes": manifest(
        ("read", "write"),
        permissions=({"identifier": "scope"}, READ_HOME),
        sets={"both": ("scope", "allow-read", "allow-write")},
    )
}


@pytest.mark.parametrize(
    ("entry", "asked", "kept"),
    [
        ({"identifier": "notes:scope", "allow": ["x"]}, "notes:read", True),
        ({"identifier": "notes:scope", "allow": ["x"]}, TITLE, False),
        ("notes:read-home", "notes:read", True),
        ("notes:read-home", TITLE, False),
    ],
)
def test_a_scope_of_a_module_stays_while_the_module_is_used(
    tmp_path: Path, entry: Any, asked: str, kept: bool
) -> None:
    write(tmp_path / "manifests" / "notes.json", TABLE)
    grants = ["core:window:allow-title", "notes:allow-read"]
    write(tmp_path / "a.json", capability(permissions=[*grants, entry]))
    (found,) = suggest(open_project([tmp_path]), asks(asked)).capabilities
    assert (entry in found.permissions) is kept
    assert len(found.permissions) == 1 + (kept and entry != "notes:read-home")


def test_a_set_with_a_scope_keeps_what_is_the_whole_module_s(tmp_path: Path) -> None:
    write(tmp_path / "manifests" / "notes.json", TABLE)
    both = {"identifier": "notes:both", "allow": ["x"]}
    write(tmp_path / "a.json", capability(permissions=[both]))
    (found,) = suggest(open_project([tmp_path]), asks("notes:read")).capabilities
    names = [each["identifier"] for each in found.permissions]  # type: ignore[index,call-overload]
    assert names == ["notes:scope", "notes:allow-read"]
    assert found.unused == {"notes:both": ("notes:write",)}


def test_a_capability_that_is_not_selected_is_not_judged(tmp_path: Path) -> None:
    first = capability(permissions=["core:window:allow-title"])
    other = capability(identifier="b", permissions=["core:default"])
    files = {"capabilities/a.json": first, "capabilities/b.json": other}
    conf = {"app": {"security": {"capabilities": ["a"]}}}
    found = suggest(app(tmp_path, files, conf), asks(TITLE)).capabilities
    assert [(each.judged, len(each.permissions)) for each in found] == [
        (True, 1),
        (False, 1),
    ]


PERMISSIONS: list[Any] = [
    "core:default",
    "core:window:default",
    "core:window:allow-title",
    "core:window:deny-close",
    "dialog:default",
    "shell:default",
    {"identifier": "core:window:default", "allow": ["x"]},
    {"identifier": "core:window:allow-title", "allow": ["y"], "deny": ["z"]},
    {"identifier": EXECUTE, "allow": [GIT, LS]},
    {"identifier": "shell:allow-spawn", "allow": [GIT]},
]
CAPABILITIES = st.fixed_dictionaries(
    {
        "windows": st.lists(st.sampled_from(["main", "m*", "*", "pop"]), max_size=2),
        "permissions": st.lists(st.sampled_from(PERMISSIONS), max_size=5),
    },
    optional={
        "remote": st.just({"urls": ["https://a.dev"]}),
        "platforms": st.sampled_from([["linux"], ["windows"]]),
    },
)
ASKS = st.builds(
    Ask,
    st.builds(
        Caller,
        st.sampled_from(["main", "pop"]),
        st.sampled_from([None, "view"]),
        st.sampled_from(["local", "https://a.dev/x"]),
    ),
    st.sampled_from(
        [TITLE, CLOSE, *EVENTS, "dialog:ask", "shell:execute", "shell:open"]
    ),
    st.sampled_from(["linux", "windows"]),
    st.sampled_from(["git", "ls"]),
)


@pytest.mark.conformance
@settings(max_examples=300, deadline=None)
@given(st.lists(CAPABILITIES, max_size=3), st.lists(ASKS, max_size=8))
def test_every_ask_stays_allowed_and_nothing_is_widened(
    tmp_path_factory: pytest.TempPathFactory, written: list[Any], asked: list[Ask]
) -> None:
    folder = tmp_path_factory.mktemp("s")
    named = [{"identifier": f"c{n}", **each} for n, each in enumerate(written)]
    old = project(folder, *named)
    found = suggest(old, asked)
    new = project(folder, *(each.written() for each in found.capabilities))
    assert not [c for c in compare(old.policy, new.policy) if c.allowed]
    again = suggest(new, asked)
    assert again.refused == found.refused
    assert [e.permissions for e in again.capabilities] == [
        e.permissions for e in found.capabilities
    ]


def recorded(folder: Path, *rows: dict[str, Any]) -> Path:
    return write(folder / "asked.json", {"decisions": list(rows)})


ROWS: list[dict[str, Any]] = [
    {"window": "main", "command": TITLE, "platform": "linux", "count": 3},
    {"window": "main", "command": "shell:execute", "program": "git"},
    {"window": "pop", "command": "dialog:ask", "origin": "https://a.dev"},
]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with capabilities and what was recorded, worked in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    scope = {"identifier": EXECUTE, "allow": [GIT, LS]}
    grants = ["core:event:default", "core:window:allow-title", scope]
    wide = capability(permissions=grants, description='a "b"\x7f')
    idle = capability(identifier="b", permissions=["dialog:default"])
    write(tmp_path / "capabilities" / "a.json", [wide, idle])
    return recorded(tmp_path, *ROWS)


@pytest.mark.parametrize(
    "form", ["text", "json", "capabilities.json", "capabilities.toml"]
)
def test_a_suggestion_is_written_so(shown: Path, form: str) -> None:
    result = call("suggest", "--recorded", shown, "--format", form)
    assert (result.exit_code, result.output) == (
        0,
        (GOLDEN / f"suggest.{form}").read_text("utf-8"),
    )


def test_what_is_ready_for_use_says_the_same_in_either_form(shown: Path) -> None:
    written = [
        call("suggest", "--recorded", shown, "--format", f"capabilities.{form}").output
        for form in ("json", "toml")
    ]
    assert json.loads(written[0]) == tomllib.loads(written[1])
    assert call("check", "-", given=written[0]).exit_code == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{}", "holds no recorded decisions"),
        ('[{"window": "a"}]', "decisions[0].command: must be text"),
        ("[5]", "decisions[0].window: must be text"),
        ('[{"window": "a", "command": "b", "platform": "c"}]', "must be one of"),
        ('[{"window": "a", "command": "b", "webview": 5}]', "text or null"),
        ('[{"window": "\\ud800", "command": "b"}]', "Unicode"),
        ("[" * 100, "JSON"),
    ],
)
def test_what_is_no_record_is_told(shown: Path, content: str, problem: str) -> None:
    shown.write_text(content)
    result = call("suggest", "--recorded", shown)
    assert result.exit_code == 2
    assert problem in result.output
