"""The rights that follow from a manifest: written, from a profile, narrowed."""

from __future__ import annotations

from typing import get_args

import pytest
from agenthost import Grants, Manifest
from agenthost.manifest_model import ProfileName
from agenthost_agents.facts import PROFILES
from agenthost_agents.manifests import parse_manifest
from agenthost_agents.rights import granted
from hypothesis import given
from hypothesis import strategies as st

WIDE = """
name = "worker"
profile = "research"
tool_allowlist = ["web_*"]
tool_blocklist = ["web_search"]

[capabilities]
network = ["*.example"]
tools = ["web_*", "file_read"]
memory_read = ["*"]
memory_write = ["self.*"]
agent_spawn = true
agent_message = ["helper-*"]
"""


def grants(text: str, *tools: str) -> dict[str, tuple[str, ...]]:
    manifest = parse_manifest(f'name = "a"\n{text}', ()).manifest
    return granted(manifest, tools or None)


def test_nothing_written_allows_nothing() -> None:
    actions = (
        "tool",
        "network",
        "memory_read",
        "memory_write",
        "agent_message",
        "agent_spawn",
        "shell",
    )
    assert grants("") == dict.fromkeys(actions, ())


@pytest.mark.manifest("capabilities.agent_spawn")
def test_what_is_written_is_granted() -> None:
    manifest = parse_manifest(WIDE, ()).manifest
    rights = granted(manifest, ["web_fetch", "web_search", "file_read"])
    assert rights == {
        "tool": ("web_fetch",),
        "network": ("*.example",),
        "memory_read": ("*",),
        "memory_write": ("self.*",),
        "agent_message": ("helper-*",),
        "agent_spawn": ("*",),
        "shell": (),
    }


@pytest.mark.parametrize(
    ("profile", "tools", "implied"),
    [
        ("minimal", {"file_read", "file_list"}, set()),
        ("research", {"web_search"}, {"network"}),
        ("coding", {"shell_exec"}, {"network"}),
        (
            "messaging",
            {"agent_call", "kv_set"},
            {"agent_message", "agent_spawn", "memory_read", "memory_write"},
        ),
        (
            "automation",
            {"web_search", "shell_exec", "kv_get"},
            {
                "network",
                "agent_message",
                "agent_spawn",
                "memory_read",
                "memory_write",
            },
        ),
    ],
)
def test_a_profile_brings_its_tools_and_rights(
    profile: str, tools: set[str], implied: set[str]
) -> None:
    rights = grants(f'profile = "{profile}"')
    assert tools <= set(rights.pop("tool"))
    assert {action for action, patterns in rights.items() if patterns} == implied


def test_what_is_written_wins_over_the_profile() -> None:
    rights = grants(
        'profile = "full"\n[capabilities]\ntools = ["file_read"]\nnetwork = []\n'
        "agent_spawn = false"
    )
    assert rights["tool"] == ("file_read",)
    assert rights["network"] == ()
    assert rights["agent_spawn"] == ()
    assert rights["agent_message"] == ("*",)


def test_former_tool_names_are_understood() -> None:
    rights = grants('[capabilities]\ntools = ["memory_store", "agent_send"]')
    assert rights["tool"] == ("kv_set", "agent_call")


def test_a_blocked_tool_is_taken_out_of_a_pattern() -> None:
    text = 'profile = "full"\ntool_blocklist = ["memory_store", "file_*"]'
    assert grants(text, "kv_set", "kv_get", "file_read")["tool"] == ("kv_get",)


def test_without_the_tools_a_blocklist_cannot_hide_what_a_pattern_may_bring() -> None:
    text = 'tool_blocklist = ["b"]\n[capabilities]\ntools = ["*", "a", "b"]'
    assert grants(text)["tool"] == ("*", "a")


PATTERNS = st.lists(st.text("ab*?", min_size=1, max_size=3), max_size=3)
TOOLS = ["a", "b", "aa", "ab", "ba", "bb", "aab", "aba", "bbb"]


@given(PATTERNS, PATTERNS, PATTERNS)
def test_lists_only_ever_narrow_what_is_allowed(
    allowed: list[str], allowlist: list[str], blocklist: list[str]
) -> None:
    def allows(manifest: Manifest) -> set[str]:
        rights = Grants(granted(manifest, TOOLS))
        return {tool for tool in TOOLS if rights.allow("tool", tool)}

    def could(manifest: Manifest) -> set[str]:
        rights = Grants(granted(manifest))
        return {tool for tool in TOOLS if rights.allow("tool", tool)}

    base = {"name": "a", "capabilities": {"tools": allowed}}
    lists = {"tool_allowlist": allowlist, "tool_blocklist": blocklist}
    narrowed = allows(Manifest.model_validate(base | lists))
    only_allowed = allows(
        Manifest.model_validate({"name": "a", "capabilities": {"tools": allowlist}})
    )
    blocked = allows(
        Manifest.model_validate({"name": "a", "capabilities": {"tools": blocklist}})
    )
    assert narrowed <= allows(Manifest.model_validate(base))
    assert narrowed <= could(Manifest.model_validate(base | lists))
    assert not narrowed & blocked
    if allowlist:
        assert narrowed <= only_allowed


def test_every_profile_that_can_be_named_has_its_tools() -> None:
    assert set(get_args(ProfileName)) == PROFILES.keys()
