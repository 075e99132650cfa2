"""The keys of an agent's manifest, their types and defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from agenthost_toml.types import Count, Names, Table, unwritten
from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, JsonValue

MODULE = "builtin:chat"
ProfileName = Literal[
    "minimal", "coding", "research", "messaging", "automation", "full", "custom"
]
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


class FallbackModel(Table, extra="allow"):
    """One of ``[[fallback_models]]``, tried in order; None is the daemon's default."""

    provider: OrDefault = None
    """Whose model it is; ``default`` or nothing is the daemon's choice."""
    model: OrDefault = Field(None, validation_alias=AliasChoices("model", "name"))
    """The model, by its id or an alias; ``default`` or nothing is the daemon's. Also
    written ``name``."""


class Model(FallbackModel):
    """``[model]``: what is asked first, and how."""

    max_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    """The longest answer, in tokens; nothing is the model's own limit."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """How freely it answers; nothing is the provider's default."""
    system_prompt: str = ""
    """What the agent is told before every conversation."""


class Capabilities(Table, extra="allow"):
    """``[capabilities]``: glob patterns; what is empty is not allowed."""

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


class Thinking(Table, extra="allow"):
    """``[thinking]``: None is the model's default, 0 is off."""

    budget_tokens: Count | None = None
    """Tokens a model may think with; 0 is off, nothing is the model's default."""
    stream_thinking: bool = False
    """Whether thoughts are streamed to who does not ask with ``thinking`` himself."""


# As text, nan survives the database, for the plugin to refuse that reads it.
class Manifest(Table, extra="allow", ser_json_inf_nan="strings"):
    """What an agent is, as its author wrote it.

    Keys that agenthost does not know itself are kept as they stand, for the plugins
    that read them (:class:`ManifestTable`) now or later.
    """

    own_tables: ClassVar[Mapping[str, type[Table]]] = {
        "model": Model,
        "capabilities": Capabilities,
        "thinking": Thinking,
    }
    """Tables of agenthost's own, to which plugins may add keys."""

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
        own = getattr(self, table) if table in self.own_tables else self
        extra = own.model_extra or {}
        return extra.get(table) if table and own is self else extra
