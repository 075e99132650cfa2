"""The JSON shapes of the catalogue: models, providers, their keys and tests."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    Field,
    SecretStr,
    model_validator,
)
from typing_extensions import TypedDict

from .shapes import Body

LONGEST_KEY = 16_384
MOST_KEYS = 16

Tier = Literal["frontier", "smart", "balanced", "fast", "local", "custom"]
TierText = Annotated[str, Field(json_schema_extra={"enum": list(get_args(Tier))})]
AuthStatus = Annotated[
    str, Field(json_schema_extra={"enum": ["configured", "missing", "no_key_needed"]})
]


def _trimmed(value: SecretStr) -> SecretStr:
    text = value.get_secret_value().strip()
    if not text:
        raise ValueError("must not be empty")
    if len(text) > LONGEST_KEY:
        raise ValueError(f"must not be longer than {LONGEST_KEY} characters")
    if not text.isascii() or not text.isprintable():
        raise ValueError("must be printable ASCII characters on one line")
    return SecretStr(text)


ApiKey = Annotated[SecretStr, AfterValidator(_trimmed)]


class SetKey(Body):
    """``POST /api/providers/{name}/key``: one key, or several to rotate over."""

    api_key: ApiKey | None = Field(
        None, validation_alias=AliasChoices("api_key", "key")
    )
    api_keys: list[ApiKey] | None = Field(None, min_length=1, max_length=MOST_KEYS)

    @model_validator(mode="after")
    def _one_of_both(self) -> SetKey:
        if (self.api_key is None) == (self.api_keys is None):
            raise ValueError("give api_key, or api_keys for several")
        return self

    def values(self) -> list[str]:
        """The keys in order, each once."""
        keys = self.api_keys or ([self.api_key] if self.api_key else [])
        return list(dict.fromkeys(key.get_secret_value() for key in keys))


class ModelFilter(Body):
    """Which models to list; what is left out filters nothing."""

    provider: str | None = None
    tier: Tier | None = None
    available: bool | None = Field(
        None, description="whether the provider has the key it needs"
    )


class ModelItem(TypedDict):
    """A model of the catalogue; costs in US dollars per million tokens."""

    id: str
    provider: str
    display_name: str
    tier: TierText
    context_window: int
    max_output: int
    input_cost_per_1m: float
    output_cost_per_1m: float
    cached_input_cost_per_1m: float | None
    supports_tools: bool
    supports_vision: bool
    supports_streaming: bool
    supports_thinking: bool
    supports_documents: bool
    always_thinks: bool
    efforts: list[str]
    aliases: list[str]
    available: bool
    status: str
    deprecation_date: str | None
    replaced_by: str | None


class ModelDetail(ModelItem):
    """``GET /api/models/{id}``; ``warning`` tells of an id that ends or has ended."""

    warning: NotRequired[str]


class ModelList(TypedDict):
    """``GET /api/models``."""

    models: list[ModelItem]
    total: int


class AliasList(TypedDict):
    """``GET /api/models/aliases``: from each short name to a model's id."""

    aliases: dict[str, str]
    total: int


class Resting(TypedDict):
    """A model that is left alone for a while, with one of the provider's keys.

    ``key`` is that one's place in the order they are tried, from 1; 0 is no key.
    """

    model: str
    key: int
    fault: str
    seconds: float


class ProviderItem(TypedDict):
    """A provider; ``auth_status`` is configured, missing or no_key_needed."""

    name: str
    display_name: str
    auth_status: AuthStatus
    env_var: NotRequired[str]
    base_url: str
    model_count: int
    resting: NotRequired[list[Resting]]


class ProviderList(TypedDict):
    """``GET /api/providers``."""

    providers: list[ProviderItem]
    total: int


class KeyAnswer(TypedDict):
    """A key was set or removed; ``message`` tells when one is still in force."""

    status: Literal["configured", "removed"]
    provider: str
    message: NotRequired[str]


class ProviderFailed(TypedDict):
    """A provider did not answer as it should."""

    status: Literal["failed"]
    provider: str
    error: str


class ProviderTested(TypedDict):
    """A provider answered.

    ``checked`` tells how: ``model`` when ``model_tested`` spoke, ``key`` when the
    provider vouched for the key alone and ``model_tested`` is what it would be asked.
    """

    status: Literal["ok"]
    provider: str
    latency_ms: int
    model_tested: str
    checked: Literal["key", "model"]
