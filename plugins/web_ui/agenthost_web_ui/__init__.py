"""The chat page at ``/``."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import RouteGroup, hookimpl

from .routes import page_routes
from .static_files import load_files


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer the page and its files; their contents are read here, once."""
    yield page_routes(load_files())
