"""The HTTP front: one ASGI layer, Quart behind it, Hypercorn below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import BackendSpec, Front, Port, hookimpl

if TYPE_CHECKING:
    from agenthost import Daemon


def open_front(daemon: Daemon) -> Front:
    """Make the front of a daemon as its configuration says; it does not listen yet."""
    from .front import QuartFront
    from .settings import settings_of

    return QuartFront(daemon, settings_of(daemon))


@hookimpl
def register_backend() -> Iterable[BackendSpec]:
    """Offer Quart for the port ``front``."""
    yield BackendSpec(Port.FRONT, "quart", open_front)
