"""The one HTTP client: policies, guard points, caps, and errors that say what left."""

from collections.abc import Iterable
from typing import Any

from agenthost import (
    Backend,
    Egress,
    EgressBackend,
    Guards,
    ManifestTable,
    hookimpl,
)


def open_egress(guards: Guards) -> Egress:
    """Open the way out, guarded at the points ``url`` and ``address``."""
    from .client import AiohttpEgress

    return AiohttpEgress(guards)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer aiohttp for the port ``egress``."""
    yield EgressBackend("aiohttp", open_egress)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read how much an agent may transfer."""
    from .manifest import TRAFFIC

    yield TRAFFIC
