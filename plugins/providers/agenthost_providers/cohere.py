"""Cohere: its second chat dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Cohere."""
    yield ProviderSpec(load_facts("cohere"), "cohere-v2")
