"""Replicate: predictions, one a call."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.replicate import Replicate


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Replicate."""
    facts = load_facts("replicate")
    yield ProviderSpec(facts, Replicate.from_quirks(facts.quirks))
