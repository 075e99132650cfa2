"""Simulated model providers: real HTTP on loopback, answers from a script."""

from __future__ import annotations

from .anthropic_messages import AnthropicMessagesWire
from .bedrock import BedrockWire
from .cohere import CohereWire
from .gemini import GeminiWire
from .ollama import OllamaWire
from .openai_chat import OpenAIChatWire
from .openai_responses import OpenAIResponsesWire
from .replicate import ReplicateSimulator, ReplicateWire
from .script import Heard, Line, Offer, Reply, ScriptedCall, Turn, Wire, called, offer
from .server import ProviderSimulator

__all__ = [
    "AnthropicMessagesWire",
    "BedrockWire",
    "CohereWire",
    "GeminiWire",
    "Heard",
    "Line",
    "Offer",
    "OllamaWire",
    "OpenAIChatWire",
    "OpenAIResponsesWire",
    "ProviderSimulator",
    "ReplicateSimulator",
    "ReplicateWire",
    "Reply",
    "ScriptedCall",
    "Turn",
    "Wire",
    "called",
    "offer",
]
