"""vLLM: the chat completions dialect at its own address."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.spoken import late


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer vLLM."""
    facts = load_facts("vllm")
    yield ProviderSpec(facts, late("openai-chat", facts.quirks))
