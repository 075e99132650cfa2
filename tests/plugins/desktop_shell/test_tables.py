"""Section 10 of the semantics: the permission tables, and tables of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agenthost_desktop_shell.findings import CapabilityError
from agenthost_desktop_shell.framework import read_tables
from agenthost_desktop_shell.manifests import Module, hyphens
from agenthost_desktop_shell.tables import Tables, UnknownIdentifier
from hypothesis import given
from hypothesis import strategies as st

from .building import manifest, module, own_table, tables

COUNTS = [
    ("autostart", 3, 3),
    ("core", 0, 88),
    ("core:app", 14, 7),
    ("core:event", 4, 4),
    ("core:image", 5, 5),
    ("core:menu", 22, 22),
    ("core:path", 8, 8),
    ("core:resources", 1, 1),
    ("core:tray", 11, 11),
    ("core:webview", 18, 4),
    ("core:window", 76, 26),
    ("dialog", 5, 5),
    ("global-shortcut", 5, 0),
    ("notification", 16, 16),
    ("shell", 5, 1),
    ("updater", 4, 4),
]
# What came since: plugins beyond the requirement's.
PLUGINS = [
    ("clipboard-manager", 6, 0),
    ("deep-link", 4, 1),
    ("fs", 27, 10),
    ("http", 5, 5),
    ("log", 1, 1),
    ("opener", 3, 3),
    ("os", 8, 7),
    ("positioner", 3, 3),
    ("process", 2, 2),
    ("sql", 4, 3),
    ("store", 14, 14),
    ("upload", 2, 2),
    ("websocket", 2, 2),
    ("window-state", 3, 3),
]


def own(known: Module) -> set[str]:
    return {command.rpartition(":")[2] for command in known.commands}


@pytest.mark.parametrize(("name", "commands", "default"), [*COUNTS, *PLUGINS])
def test_a_module_has_its_commands_and_its_default(
    name: str, commands: int, default: int
) -> None:
    known = tables().modules[name]
    assert len(known.commands) == commands
    pairs = {f"{verb}-{c}" for c in own(known) for verb in ("allow", "deny")}
    assert len(pairs) == 2 * commands
    assert pairs <= known.permissions.keys()
    assert name in {n for n, *_ in PLUGINS} or pairs == known.permissions.keys()
    assert len(tables().expand(f"{name}:default")) == default


def test_all_modules_are_there_and_no_more() -> None:
    wanted = {name for name, *_ in COUNTS}
    assert set(tables().modules) == wanted | {name for name, *_ in PLUGINS}
    required = {i for m in wanted for i in tables().modules[m].names()}
    aliases = {i for i in required if i.endswith("-tauri-version")}
    assert len(required - aliases) == 410


def test_every_table_names_the_version_it_is_of() -> None:
    version = re.compile(r"(Tauri|@tauri-apps/plugin-\S+) \d+\.\d+\.\d+")
    for known in tables().modules.values():
        assert version.fullmatch(known.source), known.name


def test_a_name_that_no_table_has_tells_of_the_table_s_version() -> None:
    with pytest.raises(UnknownIdentifier, match=r"plugin-log 2\.10\.0: build the"):
        tables().expand("log:zzz")


INVOKED = (Path(__file__).parent / "invoked.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", INVOKED)
def test_a_table_has_what_the_package_of_its_version_invokes(line: str) -> None:
    package, _, commands = line.partition(": ")
    name, _, _version = package.partition(" ")
    known = tables().modules[name]
    assert known.source == f"@tauri-apps/plugin-{package}"
    assert {hyphens(command) for command in commands.split()} <= own(known)


@pytest.mark.parametrize(
    ("identifier", "meant"),
    [
        ("core:window:allow-set-titel", "core:window:allow-set-title"),
        ("core:window:alow-close", "core:window:allow-close"),
        ("core:window:allow-nope", None),
        ("store:allow-unheard-of", None),
    ],
)
def test_only_a_slip_of_the_pen_is_taken_for_another_name(
    identifier: str, meant: str | None
) -> None:
    with pytest.raises(UnknownIdentifier) as refused:
        tables().expand(identifier)
    told = str(refused.value)
    assert (f"did you mean {meant!r}?" in told) is (meant is not None)
    assert ("the table known here" in told) is (meant is None)


def test_folders_of_fs_grant_what_their_names_say() -> None:
    read = tables().expand("fs:allow-home-read-recursive")
    assert [p.identifier for p in read] == ["fs:read-all", "fs:scope-home-recursive"]
    assert read[1].scope_allow == ({"path": "$HOME"}, {"path": "$HOME/**"})
    write = {c for p in tables().expand("fs:write-all") for c in p.allow}
    assert "fs:write-file" in write
    assert not write & {c for p in tables().expand("fs:read-all") for c in p.allow}
    assert len(tables().modules["fs"].sets) == 6 * 25 + 3


def test_every_command_has_an_allow_and_a_deny() -> None:
    for command in tables().commands:
        prefix, _, name = command.rpartition(":")
        (allow,) = tables().expand(f"{prefix}:allow-{name}")
        (deny,) = tables().expand(f"{prefix}:deny-{name}")
        assert (allow.allow, allow.deny) == ((command,), ())
        assert (deny.allow, deny.deny) == ((), (command,))


def test_core_default_is_the_nine_defaults_in_order() -> None:
    modules = ["path", "event", "window", "webview", "app"]
    modules += ["image", "resources", "menu", "tray"]
    parts = [tables().expand(f"core:{name}:default") for name in modules]
    assert tables().expand("core:default") == sum(parts, ())


NAMES = st.sampled_from(["s0", "s1", "s2", "s3"])
MEMBERS = st.lists(
    NAMES | st.sampled_from(["allow-a", "deny-a", "allow-b", "shell:default"]),
    max_size=4,
)


@given(st.lists(MEMBERS, min_size=4, max_size=4))
def test_sets_expand_depth_first_or_their_circle_is_refused(
    members: list[list[str]],
) -> None:
    sets = {f"s{number}": inner for number, inner in enumerate(members)}

    def flat(name: str, above: tuple[str, ...]) -> list[str]:
        if name in above:
            raise RecursionError
        if name not in sets:
            return ["shell:allow-open" if ":" in name else f"m:{name}"]
        return [leaf for m in sets[name] for leaf in flat(m, (*above, name))]

    known = module("m", ("a", "b"), sets=sets)
    try:
        expected = {name: flat(name, ()) for name in sets}
    except RecursionError:
        with pytest.raises(CapabilityError, match="contains itself"):
            Tables((known, tables().modules["shell"]))
        return
    found = Tables((known, tables().modules["shell"]))
    for name, leaves in expected.items():
        assert [p.identifier for p in found.expand(f"m:{name}")] == leaves


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"permissions": ({"identifier": "default"},)}, "or is 'default'"),
    ({"sets": {"default": ()}}, "or is 'default'"),
    ({"commands": ("a b",)}, "ASCII"),
    ({"commands": ("a",), "sets": {"allow-a": ()}}, "name of another"),
]


@pytest.mark.parametrize(("table", "problem"), BROKEN)
def test_a_broken_manifest_is_refused(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        module("m", **table)


def test_a_set_that_names_nothing_is_refused() -> None:
    with pytest.raises(CapabilityError, match="permission table of m: m:default"):
        Tables((module("m", default=("allow-x",)),))


def test_a_module_registered_twice_is_refused() -> None:
    with pytest.raises(CapabilityError, match="shell: is registered twice"):
        Tables((module("shell"), module("shell")))


def test_sets_that_double_for_ever_are_refused() -> None:
    sets = {f"s{n}": (f"s{n + 1}", f"s{n + 1}") for n in range(40)}
    with pytest.raises(CapabilityError, match="stands for over 10000"):
        Tables((module("m", ("a",), sets={**sets, "s40": ("allow-a",)}),))


def test_a_table_of_ones_own_replaces_the_built_in_one() -> None:
    known = Tables.builtin(module("dialog", ("ask-all",)))
    assert "dialog:allow-ask-all" in known.identifiers
    assert "dialog:allow-ask" not in known.identifiers


def test_a_folder_of_manifests_is_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(own_table("greet"))
    (tmp_path / "a.json").write_text(json.dumps({"notes": manifest(("read",))}))
    notes, application = read_tables([tmp_path])
    assert (notes.name, application.name) == ("notes", "")
    known = Tables.builtin(notes, application)
    assert {"allow-greet", "notes:deny-read", "default"} <= known.identifiers


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("permision = []", "x.toml: permision: unknown key; did you mean"),
        ('module = "m"', r"x.toml: module: unknown key; write \[\[permission\]\]"),
        ("[[permission]]", "x.toml: permission.0.identifier"),
        ("permission = [1]", "x.toml: permission.0"),
        (own_table("a", "a"), "x.toml: a permission or set is defined twice"),
        ("= 1", "x.toml:1: "),
        ("a = " + "[" * 2000, "x.toml:1: "),
        (own_table("-a"), "x.toml: "),
    ],
)
def test_an_unreadable_manifest_is_named(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(CapabilityError, match=problem):
        read_tables([tmp_path])


def test_a_manifest_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(CapabilityError, match=r"x\.toml:1: is not UTF-8 text"):
        read_tables([tmp_path])
