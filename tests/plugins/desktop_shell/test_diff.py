"""Differences between policies: what is newly allowed, what no longer is."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost_desktop_shell.diff import Change, compare
from agenthost_desktop_shell.policy import Policy
from hypothesis import given, settings
from hypothesis import strategies as st

from .building import capability, granting, policy
from .test_properties import POLICIES, _all_allowed, _policy

TITLE = "core:window:allow-title"


def changed(old: Policy, new: Policy) -> tuple[Change, ...]:
    """What changed, where each policy is the same on every platform."""
    return compare(lambda _: old, lambda _: new)


def _scope(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"identifier": "shell:allow-execute", "allow": list(entries), **more}


GIT = {"name": "git", "cmd": "git"}

ROWS: list[tuple[str, Any, Any, list[str]]] = [
    ("nothing", granting(TITLE), granting(TITLE), []),
    ("a new name", granting(TITLE), granting(TITLE, identifier="b"), []),
    (
        "a set for its members",
        granting("shell:default"),
        granting("shell:allow-open"),
        [],
    ),
    (
        "one more command",
        granting(),
        granting(TITLE),
        ["+ core:window:title to window 'main' from local"],
    ),
    (
        "a denial",
        granting(TITLE),
        granting(TITLE, "core:window:deny-title"),
        ["- core:window:title to window 'main' from local"],
    ),
    (
        "a wider label",
        granting(TITLE),
        granting(TITLE, windows=["m*"]),
        ["+ core:window:title to window 'm*' from local"],
    ),
    (
        "a narrower label",
        granting(TITLE, windows=["a*b*"]),
        granting(TITLE, windows=["a*bc*"]),
        ["- core:window:title to window 'a*b*' from local"],
    ),
    (
        "another program",
        granting(_scope(GIT)),
        granting(_scope(GIT, {"name": "sh", "cmd": "sh"})),
        [
            (
                "+ shell:execute to window 'main' from local "
                'scope {"cmd": "sh", "name": "sh"}'
            )
        ],
    ),
    (
        "a denied program",
        granting(_scope(GIT)),
        granting(_scope(GIT, deny=[GIT])),
        [
            (
                "- shell:execute to window 'main' from local "
                'scope {"cmd": "git", "name": "git"}'
            )
        ],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_change_says_what_it_allows(old: Any, new: Any, expected: list[str]) -> None:
    found = [f"{'+' if c.allowed else '-'} {c.grant}" for c in changed(old, new)]
    assert found == expected


def test_a_change_names_its_platforms() -> None:
    new = policy(capability(permissions=[TITLE], platforms=["iOS", "linux"]))
    (change,) = changed(granting(), new)
    assert change.platforms == ("linux", "iOS")
    assert change.as_json()["platforms"] == ["linux", "iOS"]


@settings(max_examples=60, deadline=None)
@given(POLICIES, POLICIES)
def test_no_difference_means_the_same_decisions(
    one: list[dict[str, Any]], two: list[dict[str, Any]]
) -> None:
    old, new = _policy(one), _policy(two)
    changes = changed(old, new)
    before, after = _all_allowed(old), _all_allowed(new)
    for row in after - before:
        assert any(c.allowed and c.grant.command == row[0] for c in changes)
    for row in before - after:
        assert any(not c.allowed and c.grant.command == row[0] for c in changes)


@given(st.text(alphabet="ab*", max_size=5), st.text(alphabet="ab*", max_size=5))
def test_a_label_that_covers_another_matches_all_it_matches(
    wide: str, narrow: str
) -> None:
    from agenthost_desktop_shell.diff import _includes
    from agenthost_desktop_shell.globs import check_glob, matches

    try:
        check_glob(wide)
        check_glob(narrow)
    except ValueError:
        return
    if _includes(wide, narrow):
        for label in ("", "a", "b", "ab", "ba", "aab", "bab", "abab", "bbaa"):
            assert matches(wide, label) or not matches(narrow, label)
