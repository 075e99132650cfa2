"""Sections 3, 4 and 7 (generic scopes) of the semantics: resolving and deciding."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost_desktop_shell.decide import command_scope, scope_allows
from agenthost_desktop_shell.findings import CapabilityError
from agenthost_desktop_shell.policy import Policy
from agenthost_desktop_shell.resolve import Scope
from agenthost_desktop_shell.tables import Tables
from agenthost_desktop_shell.terms import Caller
from agenthost_desktop_shell.validation import validate

from .building import (
    MAIN,
    TITLE,
    allowed,
    capability,
    decision,
    granting,
    module,
    policy,
)

ALLOW = "core:window:allow-title"
DENY = "core:window:deny-title"
REMOTE = {"urls": ["https://e.com"]}
PAGE = Caller("main", None, "https://e.com/page")
GRANT = capability(identifier="g", permissions=[ALLOW])

LABELS: list[tuple[dict[str, Any], Caller, bool]] = [
    ({"windows": ["main"]}, MAIN, True),
    ({"windows": ["main"]}, Caller("Main"), False),
    ({"windows": ["main"]}, Caller("main", "other"), True),
    ({"windows": ["main"], "webviews": ["nope"]}, MAIN, True),
    ({"windows": ["nope"], "webviews": ["admin-*"]}, Caller("x", "admin-1"), True),
    ({"windows": ["nope"], "webviews": ["admin-*"]}, Caller("admin-1", "x"), False),
    ({"windows": None, "webviews": ["main"]}, Caller("x", "main"), True),
    ({"windows": None, "webviews": ["main"]}, MAIN, True),
    ({"windows": None, "webviews": ["inner"]}, MAIN, False),
    ({"windows": None}, MAIN, False),
    ({"windows": [""]}, Caller(""), False),
    ({"windows": ["*"]}, Caller("anything"), True),
]


@pytest.mark.parametrize(("fields", "caller", "expected"), LABELS)
def test_windows_or_webviews_must_match(
    fields: dict[str, Any], caller: Caller, expected: bool
) -> None:
    assert allowed(granting(ALLOW, **fields), caller=caller) is expected


@pytest.mark.parametrize("caller", [MAIN, Caller("nowhere"), PAGE])
def test_an_answer_in_pieces_is_fetched_without_a_grant(caller: Caller) -> None:
    # The reference lets every page fetch the rest of its own answers.
    fetch = "plugin:__TAURI_CHANNEL__|fetch"
    of = policy(GRANT)
    assert allowed(of, fetch, caller)
    assert not allowed(of, "plugin:__TAURI_CHANNEL__|other", caller)


ORIGINS: list[tuple[dict[str, Any], Caller, bool]] = [
    ({}, MAIN, True),
    ({}, PAGE, False),
    ({"remote": REMOTE}, MAIN, True),
    ({"remote": REMOTE}, PAGE, True),
    ({"remote": REMOTE, "local": False}, MAIN, False),
    ({"remote": REMOTE, "local": False}, PAGE, True),
    ({"remote": REMOTE}, Caller("main", None, "https://f.com"), False),
    ({"remote": REMOTE}, Caller("main", None, "nonsense"), False),
    ({"remote": REMOTE}, Caller("main", None, ""), False),
    ({"local": False}, MAIN, False),
    ({"remote": {"urls": []}, "local": False}, PAGE, False),
]


@pytest.mark.parametrize(("fields", "caller", "expected"), ORIGINS)
def test_the_origin_must_match_a_context(
    fields: dict[str, Any], caller: Caller, expected: bool
) -> None:
    assert allowed(granting(ALLOW, **fields), caller=caller) is expected


DENIALS: list[tuple[str, dict[str, Any], bool]] = [
    ("for another window", {"windows": ["zzz"]}, True),
    ("for a remote only", {"remote": REMOTE, "local": False}, True),
    ("for a webview only", {"windows": None, "webviews": ["x"]}, True),
    ("for no window at all", {"windows": None}, True),
    ("on another platform", {"platforms": ["windows"]}, False),
    ("on no platform", {"platforms": []}, False),
    ("with no context", {"local": False}, False),
    ("with an empty remote", {"local": False, "remote": {"urls": []}}, False),
]


@pytest.mark.parametrize(("name", "fields", "effective"), DENIALS)
def test_a_denial_refuses_everywhere(
    name: str, fields: dict[str, Any], effective: bool
) -> None:
    denying = capability(identifier="d", permissions=[DENY], **fields)
    for order in ([GRANT, denying], [denying, GRANT]):
        assert allowed(policy(*order)) is not effective


def test_a_decision_names_what_decided() -> None:
    yes = decision(granting("core:default"))
    assert (yes.allowed, yes.capability, yes.permission) == (True, "a", ALLOW)
    no = decision(granting(ALLOW, DENY))
    assert (no.allowed, no.capability, no.permission) == (False, "a", DENY)
    assert "denied by core:window:deny-title in capability 'a'" in no.reason


MISSES: list[tuple[dict[str, Any], Caller, str, str]] = [
    ({}, Caller("other"), TITLE, "to this origin, but to no such window or webview"),
    ({}, PAGE, TITLE, "to this window or webview, but not to this origin"),
    ({"windows": ["x"]}, PAGE, TITLE, "to other windows, webviews and origins"),
    ({"platforms": ["iOS"]}, MAIN, TITLE, "but not on linux"),
    ({}, MAIN, "core:window:close", "no capability grants core:window:close"),
    ({}, MAIN, "core:window:nope", "no permission table has the command"),
    ({}, Caller("main", None, "https://a.dev"), "greet", "its local pages alone"),
]


@pytest.mark.parametrize(("fields", "caller", "command", "expected"), MISSES)
def test_a_refusal_names_the_nearest_miss(
    fields: dict[str, Any], caller: Caller, command: str, expected: str
) -> None:
    assert expected in decision(granting(ALLOW, **fields), command, caller).reason


@pytest.mark.parametrize(
    "command",
    [
        "core:window:set-title",
        "core:window:set_title",
        "plugin:window|set_title",
    ],
)
def test_a_command_may_be_written_as_the_shell_writes_it(command: str) -> None:
    assert allowed(granting("core:window:allow-set-title"), command)


@pytest.mark.parametrize("permission", ["framework-version", "tauri-version"])
@pytest.mark.parametrize("command", ["framework-version", "tauri_version"])
def test_the_renamed_command_goes_by_both_names(permission: str, command: str) -> None:
    assert allowed(granting(f"core:app:allow-{permission}"), f"core:app:{command}")
    both = granting(f"core:app:deny-{permission}", "core:app:default")
    assert not allowed(both, f"core:app:{command}")


def test_allowing_one_command_allows_no_other() -> None:
    grants = granting("shell:allow-spawn")
    assert allowed(grants, "shell:spawn")
    assert not allowed(grants, "shell:execute")


WRITE = {"allow": ["write"]}
PAIR = {**WRITE, "deny": ["read_all"]}
APP = module("", ("greet", "both"), sets={"friendly": ("allow-greet", "notes:default")})
NOTES = module(
    "notes",
    ("read-all", "write"),
    ("read", "extra-scope"),
    sets={"read": ("allow-read-all", "own")},
    permissions=(
        {"identifier": "own", "commands": WRITE, "scope": {"allow": ["own"]}},
        {"identifier": "extra-scope", "scope": {"allow": ["g1"], "deny": ["g2"]}},
        {"identifier": "mac", "commands": WRITE, "platforms": ["macOS"]},
        {"identifier": "pair", "commands": PAIR},
    ),
)


def _with_manifests(*capabilities: dict[str, Any]) -> Policy:
    names = Tables.builtin(APP, NOTES)
    return Policy(validate(list(capabilities), names).checked(), names)


def test_application_commands_are_bare() -> None:
    grants = _with_manifests(capability(permissions=["friendly"]))
    assert allowed(grants, "greet")
    assert allowed(grants, "notes:read-all")
    assert not allowed(grants, "both")


def test_a_default_that_no_table_has_means_nothing() -> None:
    grants = _with_manifests(capability(permissions=["default"]))
    assert grants.on("linux").commands == {}


def test_a_permission_has_its_own_platforms() -> None:
    grants = _with_manifests(capability(permissions=["notes:mac"]))
    assert allowed(grants, "notes:write", platform="macOS")
    assert not allowed(grants, "notes:write")


def test_a_permission_may_allow_and_deny_at_once() -> None:
    grants = _with_manifests(capability(permissions=["notes:pair", "notes:read"]))
    assert allowed(grants, "notes:write")
    assert not allowed(grants, "notes:read-all")


def test_a_scope_without_commands_is_global_and_merges() -> None:
    grants = _with_manifests(
        capability(permissions=["notes:default"]),
        capability(
            identifier="b",
            windows=None,
            permissions=[{"identifier": "notes:extra-scope", "allow": ["more"]}],
        ),
    )
    expected = Scope(("g1", "more", "g1"), ("g2", "g2"))
    assert grants.on("linux").globals == {"notes": expected}


def test_the_entry_scope_comes_first_and_goes_to_all_of_a_set() -> None:
    entry = {"identifier": "notes:default", "allow": ["e"], "deny": ["d"]}
    resolved = _with_manifests(capability(permissions=[entry])).on("linux")
    assert command_scope(resolved, "notes:write", MAIN) == Scope(("e", "own"), ("d",))
    assert command_scope(resolved, "notes:read_all", MAIN) == Scope(("e",), ("d",))
    assert resolved.globals["notes"] == Scope(("e", "g1"), ("d", "g2"))


def test_scopes_of_all_matching_records_unite() -> None:
    entry = {"identifier": "dialog:allow-open"}
    grants = policy(
        capability(permissions=[{**entry, "allow": [1]}, {**entry, "allow": [2]}]),
        capability(identifier="b", permissions=[{**entry, "deny": [3]}]),
        capability(
            identifier="c", windows=["x"], permissions=[{**entry, "allow": [4]}]
        ),
    )
    assert command_scope(grants.on("linux"), "dialog:open", MAIN) == Scope((1, 2), (3,))


def test_scope_ids_count_from_one_in_the_order_of_creation() -> None:
    one = {"identifier": "dialog:allow-open", "allow": [1]}
    two = {"identifier": "dialog:allow-save", "allow": []}
    grants = policy(
        capability(identifier="z", permissions=[two]),
        capability(identifier="y", permissions=["dialog:allow-ask", one]),
    )
    assert grants.on("linux").scopes == {1: Scope((1,), ()), 2: Scope()}


@pytest.mark.parametrize(
    ("scope", "value", "expected"),
    [
        (Scope(), 1, True),
        (Scope((1,)), 1, True),
        (Scope((1,)), 2, False),
        (Scope((1,), (1,)), 1, False),
        (Scope((), (1,)), 2, True),
    ],
)
def test_the_generic_scope_test_denies_first(
    scope: Scope, value: int, expected: bool
) -> None:
    assert scope_allows(scope, lambda item: item == value) is expected


def test_the_resolved_form_has_a_stable_shape() -> None:
    entry = {"identifier": "dialog:allow-open", "allow": ["x"]}
    grants = policy(
        capability(permissions=[entry, "dialog:deny-save"], remote=REMOTE),
        capability(identifier="b", platforms=["iOS"]),
    )
    record = {
        "capability": "a",
        "permission": "dialog:allow-open",
        "windows": ["main"],
        "webviews": [],
        "scope": 1,
    }
    denied = {**record, "permission": "dialog:deny-save", "scope": None}
    remote = {"remote": "https://e.com"}
    assert grants.on("linux").as_json() == {
        "platform": "linux",
        "capabilities": ["a"],
        "inactive": ["b"],
        "allowed": {
            "dialog:open": [
                {**record, "context": "local"},
                {**record, "context": remote},
            ]
        },
        "denied": {
            "dialog:save": [
                {**denied, "context": "local"},
                {**denied, "context": remote},
            ]
        },
        "scopes": {"1": {"allow": ["x"], "deny": []}},
        "global_scopes": {},
    }


def test_an_unknown_platform_is_refused() -> None:
    with pytest.raises(CapabilityError, match="unknown platform 'macos'; one of macOS"):
        granting(ALLOW).on("macos")
