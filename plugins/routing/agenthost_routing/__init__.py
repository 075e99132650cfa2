"""Where model calls go: which provider, model and key."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import BackendSpec, Daemon, Models, Port, hookimpl


def open_models(daemon: Daemon) -> Models:
    """Find the providers of a daemon's plugins and configuration.

    Raises:
        ConfigError: A configured provider cannot be used.
    """
    from .models import RoutedModels

    return RoutedModels(daemon)


@hookimpl
def register_backend() -> Iterable[BackendSpec]:
    """Offer routing for the port ``models``."""
    yield BackendSpec(Port.MODELS, "default", open_models)
