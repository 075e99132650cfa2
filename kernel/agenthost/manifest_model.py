"""The keys of an agent's manifest, their types and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from agenthost_chat.tool_patterns import narrowed, without
from agenthost_toml.types import Count, Money, Names, Table, shorthand, unwritten
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

    provider: OrDefault = None
    model: OrDefault = Field(None, validation_alias=AliasChoices("model", "name"))
    api_key_env: OrDefault = None
    base_url: OrDefault = None


class Model(FallbackModel):
    """``[model]``: what is asked first, and how."""

    max_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    system_prompt: str = ""


class Periodic(Table):
    """``schedule.periodic``."""

    cron: str


class Proactive(Table):
    """``schedule.proactive``."""

    conditions: Names = ()


class Continuous(Table):
    """``schedule.continuous``."""

    check_interval_secs: Annotated[int, Field(ge=1, le=2**31)] = 60


class Schedule(Table):
    """``schedule``: all None is ``"reactive"``."""

    periodic: Periodic | None = None
    proactive: Proactive | None = None
    continuous: Continuous | None = None


def _schedule(value: object) -> object:
    if isinstance(value, str):
        if value.lower() != "reactive":
            raise ValueError(
                'must be "reactive" or a table with periodic, proactive or continuous'
            )
        return {}
    return value


class Resources(Table):
    """``[resources]``: 0 is unlimited."""

    max_memory_bytes: Count = 268_435_456
    max_cpu_time_ms: Count = 30_000
    max_tool_calls_per_minute: Count = 60
    max_llm_tokens_per_hour: Count = 0
    max_network_bytes_per_hour: Count = 104_857_600
    max_cost_per_hour_usd: Money = 0.0
    max_cost_per_day_usd: Money = 0.0
    max_cost_per_month_usd: Money = 0.0


class Capabilities(Table):
    """``[capabilities]``: glob patterns; what is empty is not allowed."""

    network: Names = ()
    tools: Names = ()
    memory_read: Names = ()
    memory_write: Names = ()
    agent_spawn: bool = False
    agent_message: Names = ()
    shell: Names = ()
    ofp_discover: bool = False
    ofp_connect: Names = ()


class ExecPolicy(Table):
    """``exec_policy``: a mode alone, or a table."""

    mode: Literal["deny", "allowlist", "full"] = "allowlist"
    safe_bins: Names | None = None
    allowed_commands: Names = ()
    timeout_secs: Annotated[int, Field(ge=1, le=86_400)] = 30
    max_output_bytes: Count = 102_400
    no_output_timeout_secs: Annotated[int, Field(ge=1, le=86_400)] = 30
    shell_env_passthrough: Names = Field(
        (),
        validation_alias=AliasChoices(
            "shell_env_passthrough", "env_passthrough", "env_allowlist"
        ),
    )


class Routing(Table):
    """``[routing]``: models by the complexity of a request."""

    simple_model: OrDefault = None
    medium_model: OrDefault = None
    complex_model: OrDefault = None
    simple_threshold: Count = 100
    complex_threshold: Count = 500


class Autonomous(Table):
    """``[autonomous]``."""

    quiet_hours: str | None = None
    max_iterations: Annotated[int, Field(ge=1, le=1_000)] = 50
    max_restarts: Count = 10
    heartbeat_interval_secs: Annotated[int, Field(ge=1, le=2**31)] = 30
    heartbeat_channel: str | None = None


class Thinking(Table):
    """``[thinking]``: None is the model's default, 0 is off."""

    budget_tokens: Count | None = None
    stream_thinking: bool = False


class ToolSettings(Table):
    """``[tools.<name>]``."""

    params: dict[str, JsonValue] = Field(default_factory=dict)


class Manifest(Table):
    """What an agent is, as its author wrote it."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, AfterValidator(_name)]
    version: str = "0.1.0"
    description: Annotated[str, Field(max_length=4_096)] = ""
    author: str = ""
    module: Annotated[str, AfterValidator(_module)] = MODULE
    tags: Names = ()
    skills: Names = ()
    mcp_servers: Names = ()
    priority: Literal["Low", "Normal", "High", "Critical"] = "Normal"
    profile: ProfileName | None = None
    pinned_model: OrDefault = None
    workspace: str | None = None
    state_dir: str | None = None
    generate_identity_files: bool = True
    cache_context: bool = False
    max_history_messages: Count = 0
    tool_allowlist: Names = ()
    tool_blocklist: Names = ()
    exec_policy: Annotated[ExecPolicy, shorthand("mode")] | None = None
    model: Model = unwritten(Model)
    fallback_models: Annotated[tuple[FallbackModel, ...], Field(strict=False)] = ()
    schedule: Annotated[Schedule, BeforeValidator(_schedule)] = unwritten(Schedule)
    resources: Resources = unwritten(Resources)
    capabilities: Capabilities = unwritten(Capabilities)
    tools: dict[str, ToolSettings] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    routing: Routing | None = None
    autonomous: Autonomous | None = None
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
