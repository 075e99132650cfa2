"""Model providers: one module each, over shared wire dialects."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import CommandSpec, DialectSpec, hookimpl

from .dialects.anthropic_messages import AnthropicMessages
from .dialects.bedrock import Bedrock
from .dialects.cohere import Cohere
from .dialects.gemini import Gemini
from .dialects.ollama import Ollama
from .dialects.openai_chat import OpenAIChat
from .dialects.openai_responses import OpenAIResponses
from .dialects.replicate import Replicate


@hookimpl
def register_dialect() -> Iterable[DialectSpec]:
    """Offer the dialects to providers that are declared in the configuration."""
    yield DialectSpec("openai-chat", OpenAIChat.from_quirks)
    yield DialectSpec("openai-responses", OpenAIResponses.from_quirks)
    yield DialectSpec("anthropic-messages", AnthropicMessages.from_quirks)
    yield DialectSpec("gemini-generateContent", Gemini.from_quirks)
    yield DialectSpec("cohere-v2", Cohere.from_quirks)
    yield DialectSpec("bedrock-converse", Bedrock.from_quirks)
    yield DialectSpec("ollama", Ollama.from_quirks)
    yield DialectSpec("replicate-predictions", Replicate.from_quirks)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost models``."""
    from .refresh import models

    yield CommandSpec(models)
