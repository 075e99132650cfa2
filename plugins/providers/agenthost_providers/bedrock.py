"""AWS Bedrock: the Converse dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer AWS Bedrock."""
    facts = load_facts("bedrock")
    yield ProviderSpec(facts, late("bedrock-converse", facts.quirks))
