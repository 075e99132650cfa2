"""Anthropic: the messages dialect at its own address."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.anthropic_messages import AnthropicMessages


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Anthropic."""
    facts = load_facts("anthropic")
    yield ProviderSpec(facts, AnthropicMessages.from_quirks(facts.quirks))
