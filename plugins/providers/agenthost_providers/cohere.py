"""Cohere: its second chat dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Cohere."""
    facts = load_facts("cohere")
    yield ProviderSpec(facts, late("cohere-v2", facts.quirks))
