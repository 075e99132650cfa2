"""Every provider with a dialect keeps every promise."""

from __future__ import annotations

from agenthost.testing.providers import ProviderContract


class TestOpenAI(ProviderContract):
    provider = "openai"


class TestAnthropic(ProviderContract):
    provider = "anthropic"
    returns_reasoning = True


class TestOllama(ProviderContract):
    provider = "ollama"
    returns_reasoning = True
