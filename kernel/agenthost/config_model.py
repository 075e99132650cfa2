"""The keys of ``config.toml``, their types and defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from agenthost_toml.types import (
    Address,
    Blankable,
    Count,
    HttpUrl,
    Lower,
    Money,
    Names,
    Positive,
    Share,
    Table,
    is_loopback,
    shorthand,
    split_address,
    trimmed_line,
    unwritten,
)
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from .secrets import Secret


def _secret(value: object) -> object:
    if value is None or isinstance(value, Secret):
        return value
    text = trimmed_line(value)
    return Secret(text) if text else None


class ModelChoice(Table):
    """``[default_model]``: None leaves the choice to the daemon."""

    provider: Blankable = None
    model: Blankable = None


class FallbackProvider(Table):
    """One of ``[[fallback_providers]]``, tried in order."""

    provider: Annotated[str, Field(min_length=1)]
    model: Blankable = None


class ModelEntry(Table):
    """A model of ``[providers.<slug>] models``; in a known one, what is unset stays."""

    id: Annotated[str, Field(min_length=1)]
    aliases: Names = ()
    upstream_id: str | None = None
    display_name: str | None = None
    tier: Literal["frontier", "smart", "balanced", "fast", "local", "custom"] = "custom"
    context_window: Positive = 128_000
    max_output: Positive = 4_096
    input_cost_per_1m: Money = 0.0
    output_cost_per_1m: Money = 0.0
    cached_input_cost_per_1m: Money | None = None
    supports_tools: bool = True
    supports_vision: bool = False
    supports_streaming: bool = True
    supports_thinking: bool = False


class ProviderSection(Table):
    """``[providers.<slug>]``: changes a provider, or declares one by its dialect."""

    base_url: HttpUrl | None = None
    api_key_env: Blankable = None
    models: Annotated[
        tuple[Annotated[ModelEntry, shorthand("id")], ...], Field(strict=False)
    ] = ()
    dialect: Blankable = None
    quirks: dict[str, Any] = Field(default_factory=dict)


class PluginSelection(Table):
    """``[plugins]``: entries are ``kind:slug``, a bare slug, or globs of either."""

    set: Literal["default", "minimal", "api-only"] = "default"
    enable: Names = ()
    disable: Names = ()


class RateLimit(Table):
    """``[rate_limit]``: units for each client address."""

    enabled: bool = True
    units_per_minute: Positive = 500
    burst: Positive = 500


class StorageSection(Table):
    """``[storage]``: None is SQLite in the data folder. A URL may hold a password."""

    url: Annotated[Blankable, Field(repr=False)] = None


class Budget(Table):
    """``[budget]``: limits in US dollars and tokens; 0 is unlimited."""

    max_hourly_usd: Money = 0.0
    max_daily_usd: Money = 0.0
    max_monthly_usd: Money = 0.0
    alert_threshold: Share = 0.8
    default_max_llm_tokens_per_hour: Count = 0


class WebFetch(Table):
    """``[web.fetch]``: limits of what agents fetch."""

    allowed_hosts: Names = ()
    max_chars: Positive = 50_000
    max_response_bytes: Positive = 10 * 1024 * 1024
    timeout_secs: Annotated[float, Field(gt=0, le=3_600)] = 30.0


class WebSection(Table):
    """``[web]``."""

    fetch: WebFetch = unwritten(WebFetch)


class ServerSection(Table):
    """``[server]``: who may reach the API besides loopback, and how often at once.

    A daemon whose event loop stands still for ``stall_limit_secs`` ends itself.
    """

    allowed_hosts: Names = ()
    allowed_origins: Names = ()
    cors_origins: Names = ()
    connections_per_address: Positive = 256
    stall_limit_secs: Annotated[float, Field(ge=1, le=86_400)] = 120.0


class OpenAISection(Table):
    """``[openai]``: ``error_objects`` nests errors of ``/v1`` as OpenAI does."""

    error_objects: bool = False


class Compaction(Table):
    """``[compaction]``: when a session's history is summarised."""

    threshold_messages: Positive = 80
    keep_recent: Positive = 20
    threshold_ratio: Annotated[float, Field(gt=0, le=1)] = 0.7

    @model_validator(mode="after")
    def _keeps_less_than_all(self) -> Compaction:
        if self.keep_recent >= self.threshold_messages:
            raise ValueError("keep_recent must be smaller than threshold_messages")
        return self


class Turns(Table):
    """``[turns]``: limits of the turn engine.

    ``max_seconds`` is how long a turn may run, 0 for ever; waiting for a person, for
    the session or for another agent does not count.
    """

    max_iterations: Annotated[int, Field(ge=1, le=1_000)] = 50
    max_concurrent: Annotated[int, Field(ge=1, le=100_000)] = 256
    max_seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0


class Config(Table):
    """Everything that ``config.toml`` and ``AGENTHOST_*`` can say."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    listen_addr: Address = "127.0.0.1:4200"
    api_key: Annotated[Secret | None, BeforeValidator(_secret)] = None
    data_dir: Annotated[Path, Field(strict=False)]
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"], Lower
    ] = "info"
    allow_unauthenticated_network: bool = False
    default_model: ModelChoice = unwritten(ModelChoice)
    fallback_providers: Annotated[
        tuple[FallbackProvider, ...], Field(strict=False)
    ] = ()
    providers: dict[str, ProviderSection] = Field(default_factory=dict)
    plugins: PluginSelection = unwritten(PluginSelection)
    rate_limit: RateLimit = unwritten(RateLimit)
    storage: StorageSection = unwritten(StorageSection)
    backends: dict[str, str] = Field(default_factory=dict)
    channels: dict[str, dict[str, Any]] = Field(default_factory=dict, repr=False)
    mcp_servers: Annotated[
        tuple[dict[str, Any], ...], Field(strict=False, repr=False)
    ] = ()
    budget: Budget = unwritten(Budget)
    web: WebSection = unwritten(WebSection)
    server: ServerSection = unwritten(ServerSection)
    openai: OpenAISection = unwritten(OpenAISection)
    compaction: Compaction = unwritten(Compaction)
    turns: Turns = unwritten(Turns)

    @property
    def host(self) -> str:
        """The host to listen on, an IPv6 address without brackets."""
        return split_address(self.listen_addr)[0]

    @property
    def port(self) -> int:
        """The port to listen on; 0 lets the system choose."""
        return split_address(self.listen_addr)[1]

    @property
    def listens_on_loopback(self) -> bool:
        """Whether only this machine can reach the API; an unknown name is not."""
        return is_loopback(self.host)
