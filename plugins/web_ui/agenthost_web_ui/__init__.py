"""The chat page at ``/``."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import RouteGroup, hookimpl

from . import cards
from .routes import page_routes
from .static_files import load_files


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer the page, its files, which are read when it is, and the list of cards."""
    yield page_routes(load_files)
    yield cards.routes
