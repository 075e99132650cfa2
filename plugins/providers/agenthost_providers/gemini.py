"""Google Gemini: the generateContent dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Google Gemini."""
    facts = load_facts("gemini")
    yield ProviderSpec(facts, late("gemini-generateContent", facts.quirks))
