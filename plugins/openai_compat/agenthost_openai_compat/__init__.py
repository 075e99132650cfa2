"""``/v1``: agents as OpenAI's and Anthropic's clients speak to models."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import (
    ConfigSection,
    LateRoutes,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer chat completions, responses, models, embeddings and messages."""
    for name, path, module in (
        ("openai_chat", "/v1/chat/completions", ".chat"),
        ("openai_models", "/v1/models", ".models"),
        ("openai_embeddings", "/v1/embeddings", ".embeddings"),
        ("anthropic_messages", "/v1/messages", ".messages.routes"),
    ):
        yield LateRoutes(name, (path,), partial(_routes, module))
    yield LateRoutes("openai_responses", ("/v1/responses",), _responses)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables of responses, and of answers that have a key."""
    return (
        SchemaSpec("openai_answers", _answers),
        SchemaSpec("openai_responses", _metadata),
    )


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what keeps responses, and makes those that nobody waits for."""
    from .responses.service import served

    yield served()


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read how ``/v1`` answers."""
    from .settings import OpenAISection

    yield ConfigSection("openai", OpenAISection)


def _metadata() -> MetaData:
    from .responses.tables import metadata

    return metadata


def _answers() -> MetaData:
    from .answers import metadata

    return metadata


def _routes(module: str) -> RouteGroup:
    routes: RouteGroup = import_module(module, __package__).routes
    return routes


def _responses() -> RouteGroup:
    # What its first request needs comes with it: the loop need not wait for an import.
    for module in (".creating", ".live", ".writes"):
        import_module(f".responses{module}", __package__)
    return _routes(".responses.routes")
