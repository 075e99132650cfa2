"""The named presets of a manifest's ``profile``: tools, and the rights they imply."""

from __future__ import annotations

from typing import Literal

from .facts import FACTS

ProfileName = Literal[
    "minimal", "coding", "research", "messaging", "automation", "full", "custom"
]


def profile_tools(profile: str | None) -> tuple[str, ...]:
    """The tools that a profile stands for."""
    return tuple(FACTS["profiles"][profile]) if profile else ()


def current_name(tool: str) -> str:
    """The name a tool has now, also when it is written as the predecessor had it."""
    return str(FACTS["former_names"].get(tool, tool))


def implied_rights(profile: str | None) -> dict[str, tuple[str, ...]]:
    """The rights besides tools that a profile brings, by action."""
    rights: dict[str, tuple[str, ...]] = {}
    tools = profile_tools(profile)
    for prefix, implied in FACTS["implied"].items():
        if "*" in tools or any(tool.startswith(prefix) for tool in tools):
            rights.update({action: tuple(globs) for action, globs in implied.items()})
    return rights
