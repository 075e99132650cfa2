"""Perplexity AI: the responses dialect of its Agent API."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Perplexity AI."""
    yield ProviderSpec(load_facts("perplexity"), "openai-responses")
