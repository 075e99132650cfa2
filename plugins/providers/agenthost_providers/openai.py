"""OpenAI: chat completions, and responses for the models that need them."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer OpenAI."""
    yield ProviderSpec(load_facts("openai"), "openai-chat")
