"""Cohere: its second chat dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.cohere import Cohere


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Cohere."""
    facts = load_facts("cohere")
    yield ProviderSpec(facts, Cohere.from_quirks(facts.quirks))
