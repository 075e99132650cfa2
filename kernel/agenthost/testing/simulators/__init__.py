"""Simulated model providers: real HTTP on loopback, answers from a script."""

from __future__ import annotations

from .anthropic_messages import AnthropicMessagesWire
from .ollama import OllamaWire
from .openai_chat import OpenAIChatWire
from .script import Heard, Reply, ScriptedCall, Turn, Wire
from .server import ProviderSimulator

__all__ = [
    "AnthropicMessagesWire",
    "Heard",
    "OllamaWire",
    "OpenAIChatWire",
    "ProviderSimulator",
    "Reply",
    "ScriptedCall",
    "Turn",
    "Wire",
]
