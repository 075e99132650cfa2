"""Ollama: models on this machine, in their native dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Ollama."""
    facts = load_facts("ollama")
    yield ProviderSpec(facts, late("ollama", facts.quirks))
