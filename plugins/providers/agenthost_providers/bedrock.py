"""AWS Bedrock: the Converse dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer AWS Bedrock."""
    yield ProviderSpec(load_facts("bedrock"), "bedrock-converse")
