"""``/v1``: agents as OpenAI's clients speak to models."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ConfigSection, RouteGroup, hookimpl


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer chat completions, models and embeddings."""
    from . import chat, embeddings, models

    yield from (chat.routes, models.routes, embeddings.routes)


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read how ``/v1`` answers."""
    from .settings import OpenAISection

    yield ConfigSection("openai", OpenAISection)
