"""Sections 1 and 2 of the semantics: forms, fields, identifiers, platforms."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost_desktop_shell.identifiers import parse_identifier
from agenthost_desktop_shell.policy import platform_of
from agenthost_desktop_shell.reading import read_bytes
from agenthost_desktop_shell.terms import PLATFORMS, Mode

from .building import allowed, capability, policy, problems, report, tables

ONE = capability(permissions=["core:window:allow-title"])
OTHER = capability(identifier="b")

VALID: list[tuple[str, Any]] = [
    ("one object", ONE),
    ("an array", [ONE, OTHER]),
    ("an empty array", []),
    ("a named list", {"capabilities": [ONE, OTHER]}),
    ("a named list with more keys", {"capabilities": [ONE], "identifier": 5}),
    ("no permissions", capability(permissions=[])),
    ("an empty identifier", capability(identifier="")),
    ("remote null", {**ONE, "remote": None}),
    ("platforms null", {**ONE, "platforms": None}),
    ("platforms empty", {**ONE, "platforms": []}),
    ("an extra field", {**ONE, "$schema": "../schema.json", "anything": [1]}),
    ("neither windows nor webviews", capability(windows=None)),
    (
        "allow null",
        capability(permissions=[{"identifier": "shell:default", "allow": None}]),
    ),
    (
        "an extended entry with more keys",
        capability(permissions=[{"identifier": "dialog:default", "more": 1}]),
    ),
    (
        "values of every kind in a scope",
        capability(
            permissions=[
                {
                    "identifier": "dialog:default",
                    "allow": [None, True, 1, 1.5, "x", [1, [2]], {"a": {"b": None}}],
                }
            ]
        ),
    ),
    (
        "a framework-version",
        capability(permissions=["core:app:allow-framework-version"]),
    ),
    ("its older name", capability(permissions=["core:app:allow-tauri-version"])),
]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("name", "value"), VALID, ids=[name for name, _ in VALID])
def test_these_are_valid_in_either_mode(name: str, value: Any, mode: Mode) -> None:
    assert problems(value, mode) == []


INVALID: list[tuple[Any, str]] = [
    (5, "must be a capability"),
    ("x", "must be a capability"),
    (None, "must be a capability"),
    ([5], "must be a capability object"),
    ({"capabilities": None}, "capabilities: must be an array"),
    ({"capabilities": {}}, "capabilities: must be an array"),
    ({"identifier": "a"}, "has no 'permissions'"),
    ({"permissions": []}, "has no 'identifier'"),
    (capability(identifier=5), "identifier: must be a string"),
    ({**ONE, "description": None}, "description: must be a string"),
    ({**ONE, "windows": None}, "windows: must be an array"),
    ({**ONE, "webviews": None}, "webviews: must be an array"),
    ({**ONE, "local": None}, "local: must be true or false"),
    ({**ONE, "windows": "main"}, "windows: must be an array"),
    ({**ONE, "windows": [1]}, "windows[0]: must be a string"),
    ({**ONE, "permissions": None}, "permissions: must be an array"),
    ({**ONE, "permissions": [5]}, "permissions[0]: must be an identifier"),
    ({**ONE, "permissions": [{"allow": []}]}, "permissions[0]: has no 'identifier'"),
    (
        {**ONE, "permissions": [{"identifier": "dialog:default", "allow": {}}]},
        "permissions[0].allow: must be an array or null",
    ),
    ({**ONE, "remote": "https://a.dev"}, "remote: must be null or an object"),
    ({**ONE, "remote": {}}, "remote: has no 'urls'"),
    ({**ONE, "remote": {"urls": "https://a.dev"}}, "remote.urls: must be an array"),
    ({**ONE, "remote": {"urls": ["not a url ("]}}, "remote.urls[0]: "),
    ({**ONE, "windows": ["ma**in"]}, "windows[0]: '**' must be a whole path"),
    ({**ONE, "webviews": ["[a"]}, "webviews[0]: '[' is never closed"),
    ({**ONE, "platforms": ["macos"]}, "platforms[0]: must be one of macOS"),
    ({**ONE, "platforms": "linux"}, "platforms: must be an array or null"),
    ([ONE, ONE], "a capability 'a' already exists; rename one of them"),
    ({**ONE, "permissions": ["nfc:default"]}, "unknown module 'nfc'"),
    ({**ONE, "permissions": ["allow-foo"]}, "the application has no permission table"),
    (
        {**ONE, "permissions": ["core:window:alow-title"]},
        "did you mean 'core:window:allow-title'?",
    ),
    ({**ONE, "permissions": ["Shell:default"]}, "did you mean 'shell'?"),
    ({**ONE, "permissions": ["a:b:c"]}, "more than one colon"),
]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("value", "expected"), INVALID, ids=[e for _, e in INVALID])
def test_these_are_invalid_in_either_mode(
    value: Any, expected: str, mode: Mode
) -> None:
    assert any(expected in problem for problem in problems(value, mode))


SHELL_ENTRIES: list[tuple[str, dict[str, Any]]] = [
    ("stands twice", capability(permissions=["shell:default", "shell:default"])),
    *(
        (
            expected,
            capability(
                permissions=[{"identifier": "shell:allow-execute", "allow": [e]}]
            ),
        )
        for expected, e in [
            ("holds only args, cmd, name", {"name": "x", "cmd": "x", "sidecar": True}),
            ("holds only args, cmd, name", {"name": "x", "cmd": "x", "more": 1}),
            ("holds only args, name, sidecar", {"name": "x", "sidecar": True, "y": 1}),
            ("must be true, false or an array", {"name": "x", "cmd": "x", "args": 5}),
            ("must be a string or an object", {"name": "x", "cmd": "x", "args": [5]}),
            (
                "holds only raw, validator",
                {"name": "x", "cmd": "x", "args": [{"validator": "a", "b": 1}]},
            ),
        ]
    ),
]


@pytest.mark.parametrize(("expected", "value"), SHELL_ENTRIES)
def test_what_only_strict_refuses_lenient_lists(
    expected: str, value: dict[str, Any]
) -> None:
    strict, lenient = report(value), report(value, Mode.LENIENT)
    assert expected in str(strict.errors[0])
    assert lenient.valid
    assert lenient.strict_errors == strict.errors
    assert lenient.capabilities


BROKEN_ENTRIES: list[tuple[Any, str]] = [
    ("git", "must be an object with 'name'"),
    ({"cmd": "git"}, "has no 'name'"),
    ({"name": "git"}, "has no 'cmd'"),
    ({"name": "git", "sidecar": False}, "has no 'cmd'"),
    ({"name": 5, "cmd": "git"}, "must be a string"),
    ({"name": "git", "cmd": "git", "sidecar": "yes"}, "must be true or false"),
    ({"name": "x", "cmd": "x", "args": [{"raw": True}]}, "has no 'validator'"),
    ({"name": "x", "cmd": "x", "args": [{"validator": "(a"}]}, "invalid regular"),
    ({"name": "x", "cmd": "x", "args": [{"validator": "(?=a)"}]}, "look-around"),
    ({"name": "x", "cmd": "x", "args": [{"validator": r"(a)\1"}]}, "back-references"),
    ({"name": "x", "cmd": "x", "args": [{"validator": "a)|(b"}]}, "invalid regular"),
]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("entry", "expected"), BROKEN_ENTRIES)
def test_a_shell_entry_nobody_can_use_is_refused_in_either_mode(
    entry: Any, expected: str, mode: Mode
) -> None:
    for side in ("allow", "deny"):
        value = capability(
            permissions=[{"identifier": "shell:allow-spawn", side: [entry]}]
        )
        assert expected in problems(value, mode)[0]


IDENTIFIERS = [
    ("shell:default", "shell", "default"),
    ("core:window:allow-close", "core:window", "allow-close"),
    ("core:default", "core", "default"),
    ("allow-foo", "", "allow-foo"),
    ("A1-b:c", "A1-b", "c"),
    ("a" * 51 + ":" + "b" * 64, "a" * 51, "b" * 64),
]


@pytest.mark.parametrize(("text", "prefix", "name"), IDENTIFIERS)
def test_an_identifier_splits_at_its_last_colon(
    text: str, prefix: str, name: str
) -> None:
    parsed = parse_identifier(text)
    assert (parsed.module, parsed.name) == (prefix, name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tauri-plugin-fs:default",
        "a" * 52 + ":" + "b" * 64,
        "a_b",
        "a b",
        "ä:b",
        "-a",
        ":a",
        "a:",
        "a-",
        "a--b",
        "a-:b",
        "a:-b",
        "a::b",
        "a:b:c",
        "core:",
        "a\n",
    ],
)
def test_malformed_identifiers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_identifier(text)


def test_the_platforms_are_five_and_case_counts() -> None:
    assert PLATFORMS == ("macOS", "windows", "linux", "android", "iOS")


@pytest.mark.parametrize(
    ("triple", "platform"),
    [
        ("aarch64-apple-darwin", "macOS"),
        ("x86_64-pc-windows-msvc", "windows"),
        ("aarch64-linux-android", "android"),
        ("aarch64-apple-ios", "iOS"),
        ("x86_64-unknown-linux-gnu", "linux"),
        ("riscv64gc-unknown-freebsd", "linux"),
    ],
)
def test_a_triple_names_its_platform(triple: str, platform: str) -> None:
    assert platform_of(triple) == platform


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("platforms", [None, [], ["linux"], ["macOS", "iOS"]])
def test_a_capability_counts_on_its_platforms(
    platform: str, platforms: list[str] | None
) -> None:
    grants = policy({**ONE, "platforms": platforms})
    expected = platforms is None or platform in platforms
    assert allowed(grants, platform=platform) is expected


def test_toml_and_json_files_mean_the_same() -> None:
    toml = b"""
    [[capabilities]]
    identifier = "a"
    windows = ["main"]
    permissions = ["core:default", {identifier = "shell:allow-open", deny = []}]
    [capabilities.remote]
    urls = ["https://a.dev"]
    """
    json = b"""{"capabilities": [{"identifier": "a", "windows": ["main"],
    "permissions": ["core:default", {"identifier": "shell:allow-open", "deny": []}],
    "remote": {"urls": ["https://a.dev"]}}]}"""
    one, two = read_bytes(toml, "a.toml"), read_bytes(json, "a.json")
    assert one.value == two.value
    assert tables().identifiers
    assert report(one.value).valid


JSON_FILE = b"""{
  "identifier": "main",
  "permissions": [
    "core:default",
    {
      "identifier": "shell:allow-execute",
      "allow": [{"name": "x", "cmd": 5}]
    },
    "shell:alow-open"
  ]
}"""
TOML_FILE = b"""identifier = "main"
windows = [
  "main"]
local = "yes"
[[permissions]]
identifier = "shell:default"
[[permissions]]
identifier = "shell:alow-open"
"""


def test_an_error_names_file_line_capability_field_value_and_remedy() -> None:
    document = read_bytes(JSON_FILE, "main.json")
    first, second = report(document).errors
    assert (first.file, first.line, first.capability) == ("main.json", 7, "main")
    assert (first.field, first.value) == ("permissions[1].allow[0].cmd", 5)
    assert (second.line, second.value) == (9, "shell:alow-open")
    assert "did you mean 'shell:allow-open'?" in second.message
    assert str(second).startswith("main.json:9: capability 'main', permissions[2]: ")


def test_an_error_in_toml_names_its_line() -> None:
    errors = report(read_bytes(TOML_FILE, "main.toml")).errors
    assert [(e.line, e.field) for e in errors] == [
        (4, "local"),
        (8, "permissions[1].identifier"),
    ]
