"""What the configuration says of providers, of what stands in for them, of budgets."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from agenthost_toml.types import (
    Blankable,
    Count,
    Label,
    Names,
    Positive,
    Table,
    is_loopback,
    shorthand,
)
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    model_validator,
)

from .extras import MASKED, SHOWN, HeaderName, HeaderValue, QueryName, checked_body
from .types import HttpUrl, Money, Share

Slug = Annotated[str, Field(min_length=1)]


def _named_in_the_path(url: str) -> str:
    if "{" in url.replace("{model}", ""):
        raise ValueError("knows {model} alone")
    if "{" in urlsplit(url).netloc:
        raise ValueError("may name {model} in its path, not in its host")
    return url


def _private(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ValueError("must be https: the key is sent there")
    return url


def _scope(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._:/-]{1,256}", value):
        raise ValueError("must be letters, digits, and . _ : / -")
    return value


ModelUrl = Annotated[HttpUrl, AfterValidator(_named_in_the_path)]
TokenUrl = Annotated[HttpUrl, AfterValidator(_private)]
Scope = Annotated[str, AfterValidator(_scope)]


class FallbackProvider(Table):
    """One of ``[[fallback_providers]]``, tried in order."""

    provider: Slug = Field(description="Slug of the provider that stands in.")
    model: Blankable = Field(None, description="Its model; its first by default.")


class FallbackProviders(RootModel):  # type: ignore[type-arg]  # reason: with one, it is built at import
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


class EmbeddingEntry(Table):
    """A model that turns texts into vectors; a known one keeps what is not written."""

    id: Slug = Field(description="What it is called by.")
    upstream_id: str | None = Field(
        None, description="What the provider calls it; its id by default."
    )
    dimensions: Count = Field(
        0, description="Numbers in a vector; 0 takes what comes, if all are alike."
    )
    max_input: Positive = Field(8_192, description="Tokens of its longest text.")
    batch: Positive = Field(16, description="Texts that one request may hold.")
    input_cost_per_1m: Money = Field(0.0, description="US dollars, what it reads.")


class Entra(Table):
    """``entra``: the application of Microsoft Entra whose client secret the key is."""

    tenant: Label = Field(description="Id or domain of the directory.")
    client_id: Label = Field(description="Id of the application.")
    scope: Scope = Field(
        "https://cognitiveservices.azure.com/.default",
        description="What the token is for.",
    )
    authority: TokenUrl = Field(
        "https://login.microsoftonline.com", description="Who gives the tokens."
    )


class Vertex(Table):
    """``vertex``: a project of Google Cloud; the key is a service account's JSON."""

    project: Label = Field(description="Id of the project.")
    region: Label = Field("global", description="Where the models run.")
    token_url: TokenUrl = Field(
        "https://oauth2.googleapis.com/token", description="Who gives the tokens."
    )


class ProviderSection(Table):
    """Changes a provider that a plugin offers, or declares one by its dialect."""

    base_url: ModelUrl | None = Field(
        None,
        description="Address of its API; a declared provider needs one. ``{model}`` in "
        "its path stands for the model.",
    )
    auth: Literal["api-key", "bearer", "entra", "vertex"] | None = Field(
        None,
        description="How the key is shown: in the header ``api-key``, as a bearer, or "
        "as the token that it is exchanged for; as its dialect does by default.",
    )
    entra: Entra | None = Field(None, description='What ``auth = "entra"`` needs.')
    vertex: Vertex | None = Field(None, description='What ``auth = "vertex"`` needs.')
    api_key_env: Blankable = Field(
        None, description="The variable that holds its key; a key is then needed."
    )
    models: Annotated[
        tuple[Annotated[ModelEntry, shorthand("id")], ...], Field(strict=False)
    ] = Field((), description="Its models, as ids or tables.")
    embeddings: Annotated[
        tuple[Annotated[EmbeddingEntry, shorthand("id")], ...], Field(strict=False)
    ] = Field((), description="What turns texts into vectors, as ids or tables.")
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

    @model_validator(mode="after")
    def _of_one_piece(self) -> ProviderSection:
        for name, table in (("entra", self.entra), ("vertex", self.vertex)):
            if (table is not None) is not (self.auth == name):
                raise ValueError(
                    f'auth = "{name}" and the table {name} go together; write both'
                )
        names = [name.lower() for name in (*self.headers, *self.headers_env)]
        if len(set(names)) != len(names):
            raise ValueError("headers and headers_env name one header twice")
        return self


class Providers(RootModel):  # type: ignore[type-arg]  # reason: with one, it is built at import
    """``[providers.<slug>]``: the providers that are changed or declared, by slug."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    root: dict[str, ProviderSection] = Field(default_factory=dict)


class EmbeddingDefault(Table):
    """``[embeddings]``: what turns texts into vectors."""

    model: Blankable = Field(
        None,
        description="The model for who names none, as ``<provider>/<model>``; by "
        "default that of the default's provider, else of one that has a key, else "
        "``offline``. Vectors of two models cannot be compared.",
    )


class Transcription(Table):
    """``[transcription]``: what turns the voice messages of people into text."""

    model: Blankable = Field(
        None,
        description="The model, as ``<provider>/<model>``; by default one of the "
        "agent's own provider, where that is known for one (OpenAI, Groq). ``off`` has "
        "nobody listen.",
    )
    language: str = Field(
        "",
        max_length=8,
        description="What people speak, as ISO 639-1 has it (``de``); else it is "
        "found out.",
    )
    max_mb: int = Field(
        20, gt=0, le=100, description="The largest file that is transcribed."
    )
    cost_per_minute: float | None = Field(
        None,
        ge=0,
        le=100,
        description="USD a minute, for the budgets; by default the known price, and "
        "nothing where none is known.",
    )


class Trying(Table):
    """``[attempts]``: how often a model call is tried, and with what first."""

    most_calls: Positive = Field(
        8, description="Calls that one answer of a model may take, failed ones too."
    )
    keys: Literal["in_order", "round_robin", "least_used"] = Field(
        "in_order", description="Which of a provider's keys goes first."
    )
    targets: Literal["in_order", "latency", "cost"] = Field(
        "in_order",
        description="Which goes first of an agent's model and its fallbacks: as they "
        "are written, who begins to answer soonest, or whose price for the call is "
        "lowest. In the mode Stable an agent keeps its model.",
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
