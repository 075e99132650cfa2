"""Where model calls go: which provider, model and key, and who pays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    Backend,
    ConfigSection,
    Host,
    ManifestTable,
    Models,
    ModelsBackend,
    Observers,
    RouteGroup,
    hookimpl,
)


def open_models(host: Host, observers: Observers) -> Models:
    """Find the providers of a daemon's plugins and configuration.

    Raises:
        ConfigError: A configured provider cannot be used.
    """
    from random import SystemRandom

    from .models import RoutedModels

    return RoutedModels(host, SystemRandom(), observers)


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read which providers there are, who stands in for them, and who may spend."""
    from .settings import (
        Budget,
        EmbeddingDefault,
        FallbackProviders,
        Providers,
        Transcription,
        Trying,
    )

    yield ConfigSection("attempts", Trying)
    yield ConfigSection("budget", Budget)
    yield ConfigSection("embeddings", EmbeddingDefault)
    yield ConfigSection("transcription", Transcription)
    yield ConfigSection("fallback_providers", FallbackProviders)
    yield ConfigSection("providers", Providers)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer routing for the port ``models``."""
    yield ModelsBackend("default", open_models)


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Tell what a message would cost."""
    from .quote import routes

    yield routes


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read what an agent may spend."""
    from .manifest import SPENDING

    yield SPENDING
