"""The JSON shapes of the daemon itself: health, status, configuration, usage."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from .shapes import AgentSummary, Body, Moment


class Health(TypedDict):
    """``GET /api/health``."""

    status: Literal["ok", "degraded"]
    uptime_seconds: int
    panic_count: int
    restart_count: int


class PluginRow(TypedDict):
    """How a plugin stands."""

    key: str
    distribution: str
    version: str
    status: Literal["enabled", "disabled", "failed"]
    reason: str | None


class SlowWriteRow(TypedDict):
    """A write function of a plugin that held up every other write."""

    name: str
    count: int
    longest_ms: int


class ListenerRow(TypedDict):
    """What became of the events for one plugin."""

    plugin: str
    delivered: int
    dropped: int
    failures: int
    overruns: int
    given_up: bool


class Account(TypedDict):
    """What a plugin took of the daemon's time, in seconds, waits included.

    ``stalls`` and ``stalled`` tell how often and how long the event loop stood still
    in its code, ``stalled_in`` where it did last.
    """

    calls: int
    seconds: float
    longest: float
    stalls: int
    stalled: float
    stalled_in: str


class HealthDetail(Health):
    """``GET /api/health/detail``; ``plugin_time`` is by key.

    ``interrupted_turns`` were cut by the last end of the daemon.
    """

    version: str
    agent_count: int
    database: str
    config_warnings: list[str]
    interrupted_turns: int
    listeners: list[ListenerRow]
    plugin_time: dict[str, Account]
    plugins: list[PluginRow]
    closed_guards: dict[str, str]
    slow_writes: list[SlowWriteRow]


class ShuttingDown(TypedDict):
    """``POST /api/shutdown``; the turns that it waits for."""

    status: str
    running_turns: int


class DaemonStatus(TypedDict):
    """``GET /api/status``."""

    status: str
    version: str
    agent_count: int
    data_dir: str
    default_provider: str
    default_model: str
    uptime_seconds: int
    listen_addr: str
    agents: list[AgentSummary]


class Version(TypedDict):
    """``GET /api/version``."""

    name: str
    version: str
    build_date: str
    git_sha: str
    rust_version: str
    python_version: str
    platform: str
    arch: str


class ConfigView(TypedDict):
    """``GET /api/config``; secrets never appear."""

    data_dir: str
    default_provider: str
    default_model: str
    listen_addr: str
    api_key_set: bool
    channels_configured: int
    mcp_servers: int


class ToolList(TypedDict):
    """``GET /api/tools``."""

    tools: list[str]
    total: int
    definitions: list[dict[str, Any]]


class Ticket(TypedDict):
    """A single-use ticket for a browser's WebSocket."""

    ticket: str
    expires_in: int


class UsagePeriod(Body):
    """``GET /api/usage``: the rolling period that ends now."""

    period: Literal["hour", "day", "week", "month"] = "day"


class UsageReport(TypedDict):
    """``GET /api/usage``."""

    period: Literal["hour", "day", "week", "month"]
    total_input_tokens: int
    total_output_tokens: int
    total_cost_usd: float
    request_count: int
    active_agents: int


class UsageToday(TypedDict):
    """What was used since midnight UTC."""

    input_tokens: int
    output_tokens: int
    cost_usd: float
    requests: int


class HourlyQuota(TypedDict):
    """All agents' tokens of the rolling hour; a limit of 0 is none.

    The limit is each agent's, unless its manifest has another. At ``hourly_reset_at``
    the oldest of the tokens leave the hour.
    """

    hourly_token_limit: int
    hourly_tokens_used: int
    hourly_reset_at: Moment


class UsageSummary(TypedDict):
    """``GET /api/usage/summary``."""

    today: UsageToday
    quota: HourlyQuota


class ModelUsage(TypedDict):
    """What one model has used in all."""

    model: str
    provider: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    request_count: int


class UsageByModel(TypedDict):
    """``GET /api/usage/by-model``."""

    models: list[ModelUsage]


class SecurityReport(TypedDict):
    """``GET /api/security``; ``reasons`` tells why a system is not active."""

    security_systems: dict[str, Literal["active", "inactive"]]
    total_systems: int
    all_active: bool
    reasons: dict[str, str]
