"""The dialects by name; a provider's own is imported when it is first spoken."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from agenthost import EmbedderSpec

if TYPE_CHECKING:
    from agenthost import Dialect, Driver, Embedded, EmbeddingCall

DIALECTS: Mapping[str, str] = MappingProxyType(
    {
        "openai-chat": "openai_chat:OpenAIChat",
        "openai-responses": "openai_responses:OpenAIResponses",
        "anthropic-messages": "anthropic_messages:AnthropicMessages",
        "gemini-generateContent": "gemini:Gemini",
        "cohere-v2": "cohere:Cohere",
        "bedrock-converse": "bedrock:Bedrock",
        "ollama": "ollama:Ollama",
        "replicate-predictions": "replicate:Replicate",
    }
)
"""Module and class of this package."""
EMBEDDINGS = (
    "openai-chat",
    "openai-responses",
    "gemini-generateContent",
    "cohere-v2",
    "bedrock-converse",
    "ollama",
)
"""The dialects that have embeddings."""
TRANSCRIPTIONS = ("openai-chat", "openai-responses")
"""Those among them that have transcriptions."""


def make(name: str, quirks: Mapping[str, Any]) -> Dialect | Driver:
    """Make a dialect, or a driver, of a quirks table.

    Raises:
        InvalidInput: A quirk is not known, or its value is of another type.
    """
    module, _, kind = DIALECTS[name].partition(":")
    found = getattr(import_module(f".{module}", __package__), kind)
    made: Dialect | Driver = found.from_quirks(quirks)
    return made


def declared(name: str, quirks: Mapping[str, Any]) -> Dialect | Driver:
    """Make a dialect for a provider of the configuration.

    Where it has quirks they are looked at, which takes the dialect itself.

    Raises:
        InvalidInput: A quirk is not known, or its value is of another type.
    """
    return make(name, quirks) if quirks else late(name, quirks)


def late(name: str, quirks: Mapping[str, Any]) -> Dialect | Driver:
    """Make a dialect that is imported when it is first spoken.

    A daemon offers twenty providers and speaks to a few: its start waits for none.
    """
    return cast("Dialect | Driver", _Late(name, quirks))


async def embed(name: str, call: EmbeddingCall) -> Embedded:
    """Ask for vectors in a dialect; what that takes is imported at the first call.

    Raises:
        ProviderError: With the fault of the status, the body or the connection.
    """
    from .embedding import embed

    return await embed(name, call)


class Listening(EmbedderSpec):
    """Speaks a dialect that has transcriptions; others find it by that."""

    async def transcribe(
        self, call: EmbeddingCall, audio: bytes, media_type: str, language: str
    ) -> tuple[str, float]:
        """Give what is said, and its seconds: see ``transcribing``."""
        from .transcribing import transcribe

        return await transcribe(call, audio, media_type, language)


class _Late:
    """Stands for a dialect; whatever is asked of it is asked of the real one."""

    def __init__(self, name: str, quirks: Mapping[str, Any]) -> None:
        self.name = name
        self._quirks = quirks

    @cached_property
    def _made(self) -> Dialect | Driver:
        return make(self.name, self._quirks)

    def __getattr__(self, attribute: str) -> Any:
        # Only what a dialect shows: asking for our own here would never end.
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        found = getattr(self._made, attribute)
        # The real one stays the same: every call asks for two of its methods.
        vars(self)[attribute] = found
        return found
