"""OpenAI: chat completions, and responses for the models that need them."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ProviderSpec, hookimpl

from .catalogue import load_facts
from .dialects.openai_chat import OpenAIChat
from .dialects.openai_responses import OpenAIResponses


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer OpenAI."""
    facts = load_facts("openai")
    chat, responses = OpenAIChat.from_quirks(facts.quirks), OpenAIResponses()
    yield ProviderSpec(facts, chat, {responses.name: responses})
