"""xAI: the chat completions dialect at its own address."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer xAI."""
    yield ProviderSpec(load_facts("xai"), "openai-chat")
