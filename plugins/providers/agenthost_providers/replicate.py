"""Replicate: predictions, one a call."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Replicate."""
    facts = load_facts("replicate")
    yield ProviderSpec(facts, late("replicate-predictions", facts.quirks))
