"""Perplexity AI: the responses dialect of its Agent API."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Perplexity AI."""
    facts = load_facts("perplexity")
    yield ProviderSpec(facts, late("openai-responses", facts.quirks))
