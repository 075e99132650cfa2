"""The named presets of a manifest's ``profile``: tools, and the rights they imply."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

ProfileName = Literal[
    "minimal", "coding", "research", "messaging", "automation", "full", "custom"
]

_CODING = ("file_read", "file_list", "file_write", "shell_exec", "web_fetch")
_MESSAGING = ("agent_call", "agent_list", "kv_set", "kv_get")

PROFILE_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "minimal": ("file_read", "file_list"),
        "coding": _CODING,
        "research": ("web_fetch", "web_search", "file_read", "file_write"),
        "messaging": _MESSAGING,
        "automation": (*_CODING, "web_search", *_MESSAGING),
        "full": ("*",),
        "custom": ("*",),
    }
)

_IMPLIED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "web_": {"network": ("*",)},
    "agent_": {"agent_message": ("*",), "agent_spawn": ("*",)},
    "kv_": {"memory_read": ("*",), "memory_write": ("self.*",)},
}

FORMER_NAMES: Mapping[str, str] = MappingProxyType(
    {"memory_store": "kv_set", "memory_recall": "kv_get", "agent_send": "agent_call"}
)


def implied_rights(profile: str | None) -> dict[str, tuple[str, ...]]:
    """The rights besides tools that a profile brings, by action."""
    rights: dict[str, tuple[str, ...]] = {}
    tools = PROFILE_TOOLS[profile] if profile else ()
    for prefix, implied in _IMPLIED.items():
        if "*" in tools or any(tool.startswith(prefix) for tool in tools):
            rights.update(implied)
    return rights
