"""What the command line is to the daemon: a plugin with a section of its own.

It stands apart from the package, which ``agenthost --help`` imports without the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import (
    CommandSpec,
    ConfigSection,
    LateRoutes,
    RouteGroup,
    ServiceSpec,
    hookimpl,
)

from .settings import ProcessSection


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read what the process may do."""
    yield ConfigSection("process", ProcessSection)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what keeps the newest lines of the log."""
    from .log_ring import LogRing

    ring = LogRing()
    yield ServiceSpec("log", ring.start, ring.stop)


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer ``/api/logs``."""
    yield LateRoutes("logs", ("/api/logs",), _routes)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost logs``."""
    from .log_command import logs

    yield CommandSpec(logs)


def _routes() -> RouteGroup:
    from .log_routes import routes

    return routes
