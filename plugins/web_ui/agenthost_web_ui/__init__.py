"""The chat page at ``/``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import RouteGroup, hookimpl

from .routes import page_routes
from .static_files import load_files

if TYPE_CHECKING:
    from quart import Quart


@hookimpl
def register_routes(app: Quart) -> Iterable[RouteGroup]:  # noqa: ARG001
    """Offer the page and its files; their contents are read here, once."""
    yield page_routes(load_files())
