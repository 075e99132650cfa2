"""The rights that follow from a manifest."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import Manifest

from .commands import COMMANDS
from .facts import FORMER_NAMES, IMPLIED, PROFILES
from .patterns import narrowed, without


def granted(
    manifest: Manifest, tools: Iterable[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """The rights by action, as :class:`agenthost.Grants` takes them.

    What ``[capabilities]`` says counts; what it leaves out comes from the profile, and
    without one it is not allowed. Allowlist and blocklist narrow the tools.

    Args:
        manifest: Whose rights.
        tools: The names of the registered tools; see :class:`agenthost.Agents`.
    """
    said = manifest.capabilities
    preset = tuple(PROFILES[manifest.profile]) if manifest.profile else ()
    rights = _implied(preset)
    written = said.model_fields_set
    for action in ("network", "memory_read", "memory_write", "agent_message"):
        if action in written or action not in rights:
            rights[action] = getattr(said, action)
    if "agent_spawn" in written or "agent_spawn" not in rights:
        rights["agent_spawn"] = ("*",) if said.agent_spawn else ()
    rights["shell"] = COMMANDS.of(manifest).shell
    rights["tool"] = _tools(manifest, preset, tools)
    return rights


def _implied(tools: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    rights: dict[str, tuple[str, ...]] = {}
    for prefix, implied in IMPLIED.items():
        if "*" in tools or any(tool.startswith(prefix) for tool in tools):
            rights.update({action: tuple(globs) for action, globs in implied.items()})
    return rights


def _tools(
    manifest: Manifest, preset: tuple[str, ...], known: Iterable[str] | None
) -> tuple[str, ...]:
    allowed = _present(manifest.capabilities.tools) or preset
    if manifest.tool_allowlist:
        allowed = narrowed(allowed, _present(manifest.tool_allowlist))
    if manifest.tool_blocklist:
        allowed = without(allowed, _present(manifest.tool_blocklist), known)
    return allowed


def _present(names: Iterable[str]) -> tuple[str, ...]:
    """The names that tools have now, also when the predecessor's are written."""
    return tuple(FORMER_NAMES.get(name, name) for name in names)
