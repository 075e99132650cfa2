"""Model providers: one module each, over shared wire dialects."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import DialectSpec, hookimpl

from .dialects.anthropic_messages import AnthropicMessages
from .dialects.ollama import Ollama
from .dialects.openai_chat import OpenAIChat


@hookimpl
def register_dialect() -> Iterable[DialectSpec]:
    """Offer the dialects to providers that are declared in the configuration."""
    yield DialectSpec("openai-chat", OpenAIChat.from_quirks)
    yield DialectSpec("anthropic-messages", AnthropicMessages.from_quirks)
    yield DialectSpec("ollama", Ollama.from_quirks)
