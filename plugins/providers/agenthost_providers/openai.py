"""OpenAI: chat completions, and responses for the models that need them."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer OpenAI."""
    facts = load_facts("openai")
    responses = late("openai-responses", {})
    yield ProviderSpec(
        facts, late("openai-chat", facts.quirks), {responses.name: responses}
    )
