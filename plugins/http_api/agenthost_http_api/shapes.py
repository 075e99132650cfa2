"""The JSON shapes of the native surface: requests as models, answers as typed dicts."""

from __future__ import annotations

from typing import Any, Literal, NotRequired
from uuid import UUID

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Body(BaseModel, defer_build=True):
    """What a request brings; what checks it is built when the first one comes."""


class CreateAgent(Body):
    """``POST /api/agents``."""

    manifest_toml: str = Field(description="The agent's manifest, TOML text")


class UpdateAgent(Body):
    """``PUT /api/agents/{id}/update``; what is left out stays."""

    description: str | None = Field(None, max_length=4_096)
    system_prompt: str | None = None
    tags: list[str] | None = None


class SetMode(Body):
    """``PUT /api/agents/{id}/mode``."""

    mode: Literal["Stable", "Normal"]


class SetModel(Body):
    """``PUT /api/agents/{id}/model``."""

    model: str = Field(min_length=1)
    provider: str | None = None


class SendMessage(Body):
    """``POST /api/agents/{id}/message`` and ``/message/stream``."""

    message: str
    session_id: UUID | None = Field(
        None, description="A session of the agent, instead of its own"
    )


class StreamQuery(Body):
    """``POST /api/agents/{id}/message/stream``."""

    detach: bool = Field(
        default=False, description="Let the turn go on when the reader leaves"
    )


class AttachQuery(Body):
    """``GET /api/agents/{id}/message/stream``."""

    turn: UUID = Field(description="The turn to read")


class StopQuery(Body):
    """``POST /api/agents/{id}/stop``."""

    session: UUID | None = Field(None, description="Instead of the agent's own")
    all: bool = Field(
        default=False,
        description="Stop every turn of the agent, those that wait included",
    )


class SetValue(Body):
    """``PUT /api/memory/agents/{id}/kv/{key}``; ``value`` is any JSON value."""

    value: Any


class AgentSummary(TypedDict):
    """An agent in a list."""

    id: str
    name: str
    state: str
    created_at: str
    model_provider: str
    model_name: str
    mode: str


class ModelChoice(TypedDict):
    """The model of an agent."""

    provider: str
    model: str


class CapabilityLists(TypedDict):
    """What an agent may use."""

    tools: list[str]
    network: list[str]


class AgentDetail(TypedDict):
    """``GET /api/agents/{id}``."""

    id: str
    name: str
    state: str
    created_at: str
    session_id: str
    model: ModelChoice
    capabilities: CapabilityLists
    description: str
    tags: list[str]
    mode: str
    system_prompt: str


class Created(TypedDict):
    """An agent was created; ``warnings`` tells what in the manifest has no effect."""

    agent_id: str
    name: str
    warnings: list[str]


class Status(TypedDict):
    """What was done, and to what."""

    status: str
    agent_id: NotRequired[str]
    mode: NotRequired[str]
    model: NotRequired[str]
    provider: NotRequired[str]
    message: NotRequired[str]
    new_session_id: NotRequired[str]
    session_id: NotRequired[str]
    key: NotRequired[str]


class MessageAnswer(TypedDict):
    """The answer of a turn; ``cost_usd`` in US dollars."""

    response: str
    input_tokens: int
    output_tokens: int
    iterations: int
    cost_usd: float


class ToolEntry(TypedDict):
    """A tool call in a session's message."""

    name: str
    input: dict[str, Any]
    result: str | None
    is_error: bool


class MessageUsage(TypedDict):
    """What the turn of an answer took."""

    input_tokens: int
    output_tokens: int
    cost_usd: float


TurnStatus = Literal[
    "running", "waiting", "complete", "stopped", "interrupted", "failed"
]


class SessionMessage(TypedDict):
    """A message as people read it.

    ``status`` of a User message is its turn's as a whole, and ``error`` why it has no
    answer; of an Assistant message whether it is complete or broke off. ``usage`` and
    ``model`` stand on the last message of a turn.
    """

    role: str
    content: str
    tools: NotRequired[list[ToolEntry]]
    images: NotRequired[int]
    id: NotRequired[int]
    turn_id: NotRequired[str]
    at: NotRequired[str]
    status: NotRequired[TurnStatus]
    error: NotRequired[str]
    usage: NotRequired[MessageUsage]
    model: NotRequired[str]


class SessionDetail(TypedDict):
    """``GET /api/agents/{id}/session``."""

    session_id: str
    agent_id: str
    message_count: int
    context_window_tokens: int
    messages: list[SessionMessage]


class KVPair(TypedDict):
    """A key and its value."""

    key: str
    value: Any


class KVList(TypedDict):
    """``GET /api/memory/agents/{id}/kv``."""

    kv_pairs: list[KVPair]


class Health(TypedDict):
    """``GET /api/health``."""

    status: str
    uptime_seconds: int
    panic_count: int
    restart_count: int


class PluginRow(TypedDict):
    """How a plugin stands."""

    key: str
    distribution: str
    version: str
    status: str
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

    period: str
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
    hourly_reset_at: str


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
