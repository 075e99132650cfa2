"""What the configuration says of providers, of what stands in for them, of budgets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from agenthost_toml.types import (
    Blankable,
    Count,
    HttpUrl,
    Money,
    Names,
    Positive,
    Share,
    Table,
    shorthand,
)
from pydantic import AfterValidator, ConfigDict, Field, JsonValue, RootModel

from .extras import MASKED, SHOWN, HeaderName, HeaderValue, QueryName, checked_body

Slug = Annotated[str, Field(min_length=1)]


class FallbackProvider(Table):
    """One of ``[[fallback_providers]]``, tried in order."""

    provider: Slug = Field(description="Slug of the provider that stands in.")
    model: Blankable = Field(None, description="Its model; its first by default.")


class FallbackProviders(RootModel[tuple[FallbackProvider, ...]]):
    """``[[fallback_providers]]``: who answers when an agent's own provider does not."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    root: Annotated[tuple[FallbackProvider, ...], Field(strict=False)] = ()


class ModelEntry(Table):
    """A model of a provider; of a known model, what is not written stays as it is."""

    id: Slug = Field(description="What agents call it by.")
    aliases: Names = Field((), description="Other names for it.")
    upstream_id: str | None = Field(
        None, description="What the provider calls it; its id by default."
    )
    display_name: str | None = Field(None, description="What people see.")
    tier: Literal["frontier", "smart", "balanced", "fast", "local", "custom"] = Field(
        "custom", description="Its class."
    )
    context_window: Positive = Field(
        128_000,
        description="Tokens it can read; of a known local server's new model, "
        "what that server's first one has.",
    )
    max_output: Positive = Field(4_096, description="Tokens of its longest answer.")
    input_cost_per_1m: Money = Field(0.0, description="US dollars, what it reads.")
    output_cost_per_1m: Money = Field(0.0, description="US dollars, what it writes.")
    cached_input_cost_per_1m: Money | None = Field(
        None, description="US dollars, what it reads from a cache."
    )
    supports_tools: bool = Field(default=True, description="Whether it calls tools.")
    supports_vision: bool = Field(default=False, description="Whether it sees images.")
    supports_streaming: bool = Field(
        default=True, description="Whether its words come one by one."
    )
    supports_thinking: bool = Field(
        default=False, description="Whether it can think before it answers."
    )


class ProviderSection(Table):
    """Changes a provider that a plugin offers, or declares one by its dialect."""

    base_url: HttpUrl | None = Field(
        None, description="Address of its API; a declared provider needs one."
    )
    api_key_env: Blankable = Field(
        None, description="The variable that holds its key; a key is then needed."
    )
    models: Annotated[
        tuple[Annotated[ModelEntry, shorthand("id")], ...], Field(strict=False)
    ] = Field((), description="Its models, as ids or tables.")
    dialect: Blankable = Field(
        None, description="What its API speaks; ``openai-chat`` by default."
    )
    quirks: dict[str, Any] = Field(
        default_factory=dict, description="Where its API leaves its dialect."
    )
    headers: Annotated[dict[HeaderName, HeaderValue], MASKED] = Field(
        default_factory=dict,
        repr=False,
        description="Headers that each request brings along; shown nowhere.",
    )
    headers_env: dict[HeaderName, str] = Field(
        default_factory=dict, description="The same, by the variables that hold them."
    )
    query: Annotated[dict[QueryName, HeaderValue], MASKED] = Field(
        default_factory=dict,
        repr=False,
        description="What stands behind the ``?`` of each request; shown nowhere.",
    )
    body: Annotated[dict[str, JsonValue], AfterValidator(checked_body), SHOWN] = Field(
        default_factory=dict,
        repr=False,
        description="What each request's JSON says besides, tables merged.",
    )
    cache_hour: bool = Field(
        default=False,
        description="Whether prompts that its models mark for their cache are kept "
        "an hour, not five minutes; a write then costs twice the input.",
    )


class Providers(RootModel[dict[str, ProviderSection]]):
    """``[providers.<slug>]``: the providers that are changed or declared, by slug."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    root: dict[str, ProviderSection] = Field(default_factory=dict)


class Trying(Table):
    """``[attempts]``: how often a model call is tried, and with which key first."""

    most_calls: Positive = Field(
        8, description="Calls that one answer of a model may take, failed ones too."
    )
    keys: Literal["in_order", "round_robin", "least_used"] = Field(
        "in_order", description="Which of a provider's keys goes first."
    )


class Budget(Table):
    """``[budget]``: what all agents together may spend; 0 is no limit."""

    max_hourly_usd: Money = Field(0.0, description="US dollars in a rolling hour.")
    max_daily_usd: Money = Field(0.0, description="US dollars in a rolling day.")
    max_monthly_usd: Money = Field(0.0, description="US dollars in rolling 30 days.")
    alert_threshold: Share = Field(
        0.8, description="The share of a limit at which ``budget_alert`` is told."
    )
    default_max_llm_tokens_per_hour: Count = Field(
        0,
        description="Tokens an hour of an agent whose manifest names no limit.",
    )
