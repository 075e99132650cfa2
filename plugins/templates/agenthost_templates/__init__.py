"""Agent templates: what comes with agenthost, and the operator's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import LateRoutes, hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from agenthost import RouteGroup

    from .catalogue import Catalogue


class TemplateRoutes(LateRoutes):
    """The routes of templates; other surfaces find templates by what else it can."""

    def manifest_of(self, home: Path, template: str, name: str | None) -> str:
        """Give the manifest of a template, under another name where one is given.

        Raises:
            NotFound: There is no such template.
            Conflict: Its file is damaged.
            InvalidInput: No agent can have this name.
        """
        from .catalogue import manifest_of

        return manifest_of(home, template, name)

    def catalogue(self, home: Path) -> Catalogue:
        """Give what lists the templates of a home, as often as somebody looks."""
        from .catalogue import Catalogue

        return Catalogue(home)


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer ``/api/templates``."""
    yield TemplateRoutes("templates", ("/api/templates",), _routes)


def _routes() -> RouteGroup:
    from .routes import routes

    return routes
