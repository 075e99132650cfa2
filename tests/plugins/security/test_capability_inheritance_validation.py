"""No child may what its parent may not."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest
from agenthost import (
    ALLOW,
    OPERATOR,
    Denied,
    Deny,
    Grants,
    Principal,
    PrincipalKind,
    SpawnCase,
)
from agenthost_security import capability_inheritance_validation as system
from agenthost_security.capability_inheritance_validation.globs import contains
from hypothesis import given
from hypothesis import strategies as st

NAMES = ["".join(p) for n in range(6) for p in product("abc", repeat=n)]
PIECES = ["a", "b", "*", "?", "[ab]", "[!a]", "[a-b]", "[", "]", "!", "[b-a]", "-"]
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
PLAIN = st.lists(st.sampled_from(["a", "b", "*", "?"]), max_size=4).map("".join)


@given(parent=PATTERNS, child=PATTERNS)
def test_containment_is_never_claimed_wrongly(parent: str, child: str) -> None:
    if contains(parent, child):
        for name in (*NAMES, *PIECES, "[a", "[]", "!a", "a]", "[ab]"):
            assert fnmatchcase(name, parent) or not fnmatchcase(name, child)


@given(parent=PLAIN, child=PLAIN)
def test_containment_is_found_where_it_holds(parent: str, child: str) -> None:
    held = all(fnmatchcase(n, parent) for n in NAMES if fnmatchcase(n, child))
    assert contains(parent, child) == held


@given(pattern=st.text(max_size=20), name=st.text(max_size=20))
def test_a_literal_is_contained_exactly_where_it_matches(
    pattern: str, name: str
) -> None:
    if not set(name) & set("*?["):
        assert contains(pattern, name) == fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("parent", "child", "held"),
    [
        ("a*", "*", False),
        ("a*", "a*", True),
        ("a*", "ab*", True),
        ("a*", "a", True),
        ("a", "a*", False),
        ("*.example.com", "*.example.com", True),
        ("*.example.com", "*example.com", False),
        ("*.example.com", "a.*.example.com", True),
        ("*.example.com", "*.example.com.evil", False),
        ("self.*", "self.notes.*", True),
        ("self.*", "*", False),
        ("??*", "???", True),
        ("???", "??*", False),
        ("[a-f]*", "[b-c]x", True),
        ("[b-c]x", "[a-f]*", False),
        ("*a*", "*a", True),
        ("*a", "*a*", False),
        ("x[", "x[", True),
        ("", "*", False),
        ("*", "anything", True),
    ],
)
def test_known_pairs(parent: str, child: str, held: bool) -> None:
    assert contains(parent, child) is held


def test_hostile_patterns_end_in_a_refusal() -> None:
    assert not contains("*a" * 100 + "b", "*?" * 100)
    assert not contains("a" * 300 + "*", "a" * 301)


def agent(**rights: tuple[str, ...]) -> Principal:
    return Principal(PrincipalKind.AGENT, "parent", Grants(rights))


def test_an_operator_may_hand_on_any_right() -> None:
    case = SpawnCase(OPERATOR, "child", {"tool": ("*",), "network": ("*",)})
    assert system.within_parent(case) == ALLOW


def test_an_agent_hands_on_what_it_holds() -> None:
    parent = agent(tool=("file_*", "kv_get"), network=("*.example.com",))
    asked = {"tool": ("file_read", "kv_get"), "network": ("api.example.com",)}
    assert system.within_parent(SpawnCase(parent, "child", asked)) == ALLOW


@pytest.mark.parametrize(
    "asked",
    [
        {"tool": ("*",)},
        {"tool": ("file_read", "shell_exec")},
        {"network": ("example.com",)},
        {"memory_read": ("self.*",)},
    ],
)
def test_an_escalation_is_denied(asked: dict[str, tuple[str, ...]]) -> None:
    parent = agent(tool=("file_*",), network=("*.example.com",))
    verdict = system.within_parent(SpawnCase(parent, "child", asked))
    assert isinstance(verdict, Deny)
    assert verdict.error is Denied
    assert "child" in verdict.reason


def test_an_agent_without_rights_hands_on_none() -> None:
    nobody = agent()
    assert system.within_parent(SpawnCase(nobody, "child", {})) == ALLOW
    case = SpawnCase(nobody, "child", {"tool": ("",)})
    assert isinstance(system.within_parent(case), Deny)


def test_the_self_test_passes_and_notices_sabotage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system.security_system().self_test()
    monkeypatch.setattr(system, "contains", lambda _parent, _child: True)
    with pytest.raises(RuntimeError):
        system.self_test()
