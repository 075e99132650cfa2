"""Replicate: predictions, one a call."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Replicate."""
    yield ProviderSpec(load_facts("replicate"), "replicate-predictions")
