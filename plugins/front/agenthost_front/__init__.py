"""The HTTP front: one ASGI layer, Quart behind it, Hypercorn below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import Backend, ConfigSection, Front, FrontBackend, hookimpl

if TYPE_CHECKING:
    from agenthost import Host


def open_front(host: Host) -> Front:
    """Make the front of a daemon as its configuration says; it does not listen yet."""
    from .lean import lean
    from .settings import settings_of

    with lean():
        from .front import QuartFront

    return QuartFront(host, settings_of(host))


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read who may come in."""
    from .settings import Server

    yield ConfigSection("server", Server)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer Quart for the port ``front``."""
    yield FrontBackend("quart", open_front)
