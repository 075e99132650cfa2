"""The keys of an agent's manifest, their types and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from agenthost_chat.tool_patterns import narrowed, without
from agenthost_toml.types import Count, Names, Table, unwritten
from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
)

from .profiles import ProfileName, current_name, implied_rights, profile_tools

MODULE = "builtin:chat"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UUID = re.compile("[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value) or not value.strip("."):
        raise ValueError("must be 1 to 64 of A-Z, a-z, 0-9, dot, dash and underscore")
    if _UUID.fullmatch(value):
        raise ValueError("must not look like an id, which names an agent as well")
    return value


def _module(value: str) -> str:
    if value == MODULE:
        return value
    if value.startswith(("python:", "wasm:")):
        kind = value.partition(":")[0]
        raise ValueError(
            f"{kind}: modules are refused until the skills runtime brings them; "
            f'use "{MODULE}"'
        )
    raise ValueError(f'unknown module; use "{MODULE}"')


def _daemon_default(value: object) -> object:
    if isinstance(value, str) and value.strip().lower() in {"", "default"}:
        return None
    return value


OrDefault = Annotated[str | None, BeforeValidator(_daemon_default)]


class FallbackModel(Table):
    """One of ``[[fallback_models]]``, tried in order; None is the daemon's default."""

    model_config = ConfigDict(extra="allow")

    provider: OrDefault = None
    """Whose model it is; ``default`` or nothing is the daemon's choice."""
    model: OrDefault = Field(None, validation_alias=AliasChoices("model", "name"))
    """The model, by its id or an alias; ``default`` or nothing is the daemon's."""


class Model(FallbackModel):
    """``[model]``: what is asked first, and how."""

    max_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    """The longest answer, in tokens; nothing is the model's own limit."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """How freely it answers; nothing is the provider's default."""
    system_prompt: str = ""
    """What the agent is told before every conversation."""


class Capabilities(Table):
    """``[capabilities]``: glob patterns; what is empty is not allowed."""

    model_config = ConfigDict(extra="allow")

    network: Names = ()
    """Hosts it may reach."""
    tools: Names = ()
    """Tools it may call."""
    memory_read: Names = ()
    """Keys of memory it may read: ``self.*``, ``shared.*``, ``<agent>.*``."""
    memory_write: Names = ()
    """Keys of memory it may write."""
    agent_spawn: bool = False
    """Whether it may make agents."""
    agent_message: Names = ()
    """Agents it may speak to, by name."""


class Thinking(Table):
    """``[thinking]``: None is the model's default, 0 is off."""

    model_config = ConfigDict(extra="allow")

    budget_tokens: Count | None = None
    """Tokens a model may think with; 0 is off, nothing is the model's default."""


class Manifest(Table):
    """What an agent is, as its author wrote it.

    Keys that agenthost does not know itself are kept as they stand, for the plugins
    that read them (:class:`ManifestTable`) now or later.
    """

    # Text for what JSON has not: nan survives the database, for a plugin to refuse.
    model_config = ConfigDict(extra="allow", ser_json_inf_nan="strings")

    name: Annotated[str, AfterValidator(_name)]
    """Who it is; no other agent has the name."""
    version: str = "0.1.0"
    """The author's own count of changes."""
    description: Annotated[str, Field(max_length=4_096)] = ""
    """What it is for; told to its model."""
    author: str = ""
    """Who wrote it."""
    module: Annotated[str, AfterValidator(_module)] = MODULE
    """What runs it."""
    tags: Names = ()
    """Words to find it by."""
    profile: ProfileName | None = None
    """A preset of tools and of the rights that they need."""
    tool_allowlist: Names = ()
    """Of the allowed tools only these; nothing is all of them."""
    tool_blocklist: Names = ()
    """Of the allowed tools none of these."""
    model: Model = unwritten(Model)
    fallback_models: Annotated[tuple[FallbackModel, ...], Field(strict=False)] = ()
    """Models that are asked in this order when the first cannot answer."""
    capabilities: Capabilities = unwritten(Capabilities)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """Whatever its author wants to keep with it."""
    thinking: Thinking = unwritten(Thinking)

    def model_json(self) -> str:
        """Write it for the database: only what the author set."""
        return self.model_dump_json(exclude_unset=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`model_json` wrote.

        Raises:
            ValueError: The text is not a manifest.
        """
        return cls.model_validate_json(text)

    @cached_property
    def tables(self) -> dict[object, tuple[object, Any]]:
        """What plugins have read, by their table: what stood there, what it meant."""
        return {}

    def beside(self, table: str) -> Any:
        """What stands in a table beside agenthost's own keys; ``""`` is the top."""
        if table in OWN:
            return (getattr(self, table) if table else self).model_extra
        return (self.model_extra or {}).get(table)

    def grants(
        self, tools: Iterable[str] | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """The agent's rights by action, as :class:`agenthost.Grants` takes them.

        What ``[capabilities]`` says counts; what it leaves out comes from the profile,
        and without one it is not allowed. Allowlist and blocklist narrow the tools.

        Args:
            tools: The names of the registered tools. With a blocklist they are needed
                to act: patterns are resolved over them, less what is blocked. Without
                them the answer is the most that the agent could ever get, which is
                what comparing its rights with those of its maker needs.
        """
        rights = implied_rights(self.profile)
        written = self.capabilities.model_fields_set
        for action in ("network", "memory_read", "memory_write", "agent_message"):
            if action in written or action not in rights:
                rights[action] = getattr(self.capabilities, action)
        if "agent_spawn" in written or "agent_spawn" not in rights:
            rights["agent_spawn"] = ("*",) if self.capabilities.agent_spawn else ()
        rights["tool"] = self._tools(tools)
        return rights

    def _tools(self, known: Iterable[str] | None) -> tuple[str, ...]:
        preset = profile_tools(self.profile)
        allowed = _present(self.capabilities.tools) or preset
        if self.tool_allowlist:
            allowed = narrowed(allowed, _present(self.tool_allowlist))
        if self.tool_blocklist:
            allowed = without(allowed, _present(self.tool_blocklist), known)
        return allowed


def _present(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(current_name, names))


OWN: Mapping[str, type[Table]] = {
    "": Manifest,
    "model": Model,
    "capabilities": Capabilities,
    "thinking": Thinking,
}
"""Agenthost's own tables, to which plugins may add keys."""
