"""Agent templates: what comes with agenthost, and the operator's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import LateRoutes, hookimpl

if TYPE_CHECKING:
    from agenthost import RouteGroup


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer ``/api/templates``."""
    yield LateRoutes("templates", ("/api/templates",), _routes)


def _routes() -> RouteGroup:
    from .routes import routes

    return routes
