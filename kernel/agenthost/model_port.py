"""Where model calls go: the port MODELS, which a plugin serves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Protocol

from .chat import ChatRequest, Delta
from .providers import ModelFacts, ProviderSpec


@dataclass(frozen=True, slots=True)
class Target:
    """A model that can be called: its provider, facts and wire id."""

    provider: ProviderSpec
    model: ModelFacts


class Models(Protocol):
    """The providers and models there are, and the way to call them."""

    @property
    def providers(self) -> Mapping[str, ProviderSpec]:
        """All providers by slug."""
        ...

    async def probe_local(self) -> None:
        """Find out whether a local server answers, to prefer it as the default."""
        ...

    def default(self) -> Target:
        """Give the daemon's default model."""
        ...

    def names_of_default(self) -> tuple[str, str]:
        """Name the default provider's slug and model id, for display."""
        ...

    def lists(self, model: str) -> bool:
        """Tell whether some catalogue lists a model of this name."""
        ...

    def auth_status(self, slug: str) -> str:
        """How a provider's key stands: configured, missing or no_key_needed."""
        ...

    def resolve(self, provider: str | None, model: str | None) -> Target:
        """Find the model; ``default`` or nothing means the daemon's default.

        Raises:
            InvalidInput: The provider is unknown, or has no model to choose.
        """
        ...

    def check(self, target: Target) -> None:
        """Refuse a target that cannot be called for want of a key.

        Raises:
            ProviderError: Fault AUTH, naming the environment variable.
        """
        ...

    def stream(
        self, target: Target, request: ChatRequest
    ) -> AsyncGenerator[Delta, None]:
        """Call the model.

        Raises:
            ProviderError: What the call failed with.
        """
        ...
