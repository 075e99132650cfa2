"""The one HTTP client: policies, guard points, caps, and errors that say what left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agenthost import (
    Backend,
    Egress,
    EgressBackend,
    Guards,
    ManifestTable,
    SchemaSpec,
    ServiceSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData


def open_egress(guards: Guards) -> Egress:
    """Open the way out, guarded at the points ``url`` and ``address``."""
    from .client import AiohttpEgress

    return AiohttpEgress(guards)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer aiohttp for the port ``egress``."""
    yield EgressBackend("aiohttp", open_egress)


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the table of what agents have transferred."""
    return SchemaSpec("egress", _tables)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what keeps that over a restart."""
    from .ledger import Ledger

    ledger = Ledger()
    yield ServiceSpec("egress", ledger.start, ledger.stop)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read how much an agent may transfer."""
    from .manifest import TRAFFIC

    yield TRAFFIC


def _tables() -> MetaData:
    from .tables import metadata

    return metadata
