"""Properties of decisions: deny precedence and monotony, over random policies."""

from __future__ import annotations

from typing import Any

from agenthost_desktop_shell.policy import Policy
from agenthost_desktop_shell.terms import Caller
from hypothesis import given, settings
from hypothesis import strategies as st

from .building import allowed, capability, policy

COMMANDS = ["core:window:title", "core:window:close", "shell:open", "dialog:ask"]
NAMES = [command.rpartition(":") for command in COMMANDS]
ALLOWS = [f"{module}:allow-{name}" for module, _, name in NAMES]
DENIES = [f"{module}:deny-{name}" for module, _, name in NAMES]
SETS = ["core:default", "shell:default", "core:window:default"]
PLATFORMS = ["linux", "windows"]
LABELS = st.lists(st.sampled_from(["main", "m*", "*", "inner", "[!m]*"]), max_size=2)
CALLERS = [
    Caller(window, webview, origin)
    for window in ("main", "other")
    for webview in (None, "inner")
    for origin in ("local", "https://a.dev/x")
]


def _capabilities(permissions: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "windows": LABELS,
            "webviews": LABELS,
            "local": st.booleans(),
            "permissions": st.lists(
                st.sampled_from(permissions), max_size=4, unique=True
            ),
        },
        optional={
            "remote": st.sampled_from([{"urls": ["https://a.dev"]}, {"urls": []}]),
            "platforms": st.lists(st.sampled_from(PLATFORMS), max_size=2),
        },
    )


ANY = _capabilities([*ALLOWS, *DENIES, *SETS])
POLICIES = st.lists(ANY, max_size=4)


def _policy(capabilities: list[dict[str, Any]]) -> Policy:
    named = [capability(identifier=f"c{n}", **c) for n, c in enumerate(capabilities)]
    return policy(*named)


def _all_allowed(of: Policy) -> set[tuple[str, Caller, str]]:
    return {
        (command, caller, platform)
        for command in COMMANDS
        for caller in CALLERS
        for platform in PLATFORMS
        if allowed(of, command, caller, platform)
    }


@settings(max_examples=150, deadline=None)
@given(POLICIES, _capabilities([*ALLOWS, *SETS]), st.integers(0, 4))
def test_adding_an_allow_never_removes_another(
    capabilities: list[dict[str, Any]], more: dict[str, Any], place: int
) -> None:
    before = _all_allowed(_policy(capabilities))
    after = _all_allowed(_policy([*capabilities[:place], more, *capabilities[place:]]))
    assert before <= after


@settings(max_examples=150, deadline=None)
@given(POLICIES, _capabilities(DENIES), st.integers(0, 4))
def test_adding_a_deny_never_adds_one(
    capabilities: list[dict[str, Any]], more: dict[str, Any], place: int
) -> None:
    before = _all_allowed(_policy(capabilities))
    after = _all_allowed(_policy([*capabilities[:place], more, *capabilities[place:]]))
    assert after <= before


@settings(max_examples=150, deadline=None)
@given(POLICIES, st.sampled_from(range(len(COMMANDS))))
def test_a_denied_command_is_allowed_to_nobody(
    capabilities: list[dict[str, Any]], which: int
) -> None:
    denying = {"windows": ["nobody"], "permissions": [DENIES[which]]}
    grants = _policy([*capabilities, denying])
    assert not {row for row in _all_allowed(grants) if row[0] == COMMANDS[which]}


@settings(max_examples=150, deadline=None)
@given(POLICIES)
def test_decisions_agree_with_the_resolved_form(
    capabilities: list[dict[str, Any]],
) -> None:
    grants = _policy(capabilities)
    forms: dict[str, Any] = {p: grants.on(p).as_json() for p in PLATFORMS}
    assert _all_allowed(grants) == {
        (command, caller, platform)
        for platform, form in forms.items()
        for command in COMMANDS
        for caller in CALLERS
        if command not in form["denied"]
        and any(_meets(record, caller) for record in form["allowed"].get(command, ()))
    }


def _meets(record: dict[str, Any], caller: Caller) -> bool:
    """Judge one record by hand: the labels of these tests are few."""
    meant = {
        "main": {"main"},
        "m*": {"main"},
        "*": {"main", "other", "inner"},
        "inner": {"inner"},
        "[!m]*": {"other", "inner"},
    }
    local = caller.origin == "local"
    context = "local" if local else {"remote": "https://a.dev"}
    webview = caller.window if caller.webview is None else caller.webview
    return record["context"] == context and (
        any(caller.window in meant[glob] for glob in record["windows"])
        or any(webview in meant[glob] for glob in record["webviews"])
    )
