"""An audit trail that proves itself: chained entries, a tree, signed heads."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import (
    Backend,
    CommandSpec,
    Host,
    JsonObject,
    LateRoutes,
    ReceiptsBackend,
    RouteGroup,
    SchemaSpec,
    SecuritySystem,
    ServiceSpec,
    Turn,
    TurnResult,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@hookimpl
def security_system() -> SecuritySystem:
    """Offer the trail: while it has failed, nothing that is recorded happens."""
    from .system import AuditSystem

    return AuditSystem()


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the tables of entries, tiles and marks."""

    def metadata() -> MetaData:
        from .tables import metadata

        return metadata

    return SchemaSpec("audit", metadata)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what records and signs."""
    from .system import trail_of

    async def start(host: Host) -> None:
        await trail_of(host).start(host)

    async def stop(host: Host) -> None:
        await trail_of(host).stop()

    warm_up = partial(import_module, ".tables", __package__)
    yield ServiceSpec("audit_trail", start, stop, warm_up)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer receipts of answers."""

    async def issue(host: Host, turn: Turn, result: TurnResult) -> JsonObject:
        from .receipts import issue

        return await issue(host, turn, result)

    yield ReceiptsBackend("merkle_audit_trail", issue)


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer ``/api/audit``."""
    yield LateRoutes("security.audit", ("/api/audit",), _routes)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost audit`` and ``agenthost security``."""
    from .commands import audit, security

    yield CommandSpec(audit)
    yield CommandSpec(security)


def _routes() -> RouteGroup:
    from .routes import routes

    return routes
