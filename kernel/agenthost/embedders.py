"""The contract of embeddings: texts go in, vectors come out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from agenthost_chat.chat import Usage
from agenthost_values.value_class import value_class

if TYPE_CHECKING:
    import httpx

    from .providers import Endpoint, Exchange


@value_class
class EmbeddingCall:
    """Texts on their way to become vectors: what an embedder gets.

    There are no more of them than the model's row takes. ``query`` says that they ask;
    else they are what is to be found. ``http`` is the egress client, and every request
    is sent with the ``extensions``.
    """

    texts: Sequence[str]
    endpoint: Endpoint
    http: httpx.AsyncClient
    exchange: Exchange
    query: bool = False
    extensions: dict[str, Any] = field(default_factory=dict)


@value_class
class Embedded:
    """Vectors in the order of their texts, all of one length.

    ``names`` are the provider's slug and the model's id: vectors of two models cannot
    be compared. What an embedder does not count in ``usage`` is estimated.
    """

    vectors: Sequence[Sequence[float]]
    usage: Usage = Usage()
    names: tuple[str, str] = ("", "")


@value_class
class EmbedderSpec:
    """How the providers of a dialect, or the driver, of this name give vectors.

    ``embed`` raises ProviderError.
    """

    name: str
    embed: Callable[[EmbeddingCall], Awaitable[Embedded]]
