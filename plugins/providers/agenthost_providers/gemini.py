"""Google Gemini: the generateContent dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Google Gemini."""
    yield ProviderSpec(load_facts("gemini"), "gemini-generateContent")
