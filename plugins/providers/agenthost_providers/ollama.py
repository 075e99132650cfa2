"""Ollama: models on this machine, in their native dialect."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer Ollama."""
    yield ProviderSpec(load_facts("ollama"), "ollama")
