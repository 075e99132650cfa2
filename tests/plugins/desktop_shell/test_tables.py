"""Section 10 of the semantics: the permission tables, and tables of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agenthost_desktop_shell.findings import CapabilityError
from agenthost_desktop_shell.framework import read_tables
from agenthost_desktop_shell.manifests import Manifest, prepare
from agenthost_desktop_shell.tables import Tables
from hypothesis import given
from hypothesis import strategies as st

from .building import module, tables

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


@pytest.mark.parametrize(("name", "commands", "default"), COUNTS)
def test_a_module_has_its_commands_and_its_default(
    name: str, commands: int, default: int
) -> None:
    known = tables().modules[name]
    assert len(known.commands) == commands
    assert len(known.permissions) == 2 * commands
    assert len(tables().expand(f"{name}:default")) == default


def test_all_modules_are_there_and_no_more() -> None:
    assert set(tables().modules) == {name for name, *_ in COUNTS}
    aliases = {i for i in tables().identifiers if i.endswith("-tauri-version")}
    assert len(tables().identifiers - aliases) == 410


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

    known = module(
        module="m",
        commands=("a", "b"),
        set=tuple({"identifier": n, "permissions": tuple(m)} for n, m in sets.items()),
    )
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
    ({"commands": ("a", "a")}, "defined twice"),
    ({"permission": ({"identifier": "default"},)}, "defined twice"),
    ({"commands": ("a",), "aliases": {"x": "y"}}, "unknown commands"),
    ({"commands": ("a b",)}, "ASCII"),
    (
        {"commands": ("a",), "set": ({"identifier": "allow-a", "permissions": ()},)},
        "name of another",
    ),
]


@pytest.mark.parametrize(("manifest", "problem"), BROKEN)
def test_a_broken_manifest_is_refused(manifest: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        prepare(Manifest(module="m", **manifest))


def test_a_set_that_names_nothing_is_refused() -> None:
    with pytest.raises(CapabilityError, match="permission table of m: m:default"):
        Tables((module(module="m", default=("allow-x",)),))


def test_a_module_registered_twice_is_refused() -> None:
    with pytest.raises(CapabilityError, match="shell: is registered twice"):
        Tables((module(module="shell"), module(module="shell")))


def test_sets_that_double_for_ever_are_refused() -> None:
    sets = tuple(
        {"identifier": f"s{n}", "permissions": (f"s{n + 1}", f"s{n + 1}")}
        for n in range(40)
    )
    last = {"identifier": "s40", "permissions": ("allow-a",)}
    with pytest.raises(CapabilityError, match="stands for over 10000"):
        Tables((module(module="m", commands=("a",), set=(*sets, last)),))


def test_a_table_of_ones_own_replaces_the_built_in_one() -> None:
    known = Tables.builtin(module(module="dialog", commands=("ask-all",)))
    assert "dialog:allow-ask-all" in known.identifiers
    assert "dialog:allow-ask" not in known.identifiers


def test_a_folder_of_manifests_is_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text('commands = ["greet"]\n')
    (tmp_path / "a.toml").write_text('module = "notes"\ncommands = ["read"]\n')
    notes, application = read_tables([tmp_path])
    assert (notes.name, application.name) == ("notes", "")
    known = Tables.builtin(notes, application)
    assert {"allow-greet", "notes:deny-read", "default"} <= known.identifiers


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("comands = []", "x.toml: comands: unknown key"),
        ("commands = [1]", "x.toml: commands.0"),
        ("= 1", "x.toml:1: "),
        ("a = " + "[" * 2000, "x.toml:1: "),
        ('commands = ["-a"]', "x.toml: "),
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
