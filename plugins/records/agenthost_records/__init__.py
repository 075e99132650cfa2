"""What is kept of agents, conversations, turns, usage and memory: rows of the store."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import (
    Backend,
    Clock,
    Records,
    RecordsBackend,
    SchemaSpec,
    ServiceSpec,
    Store,
    hookimpl,
)


def open_records(store: Store, clock: Clock) -> Records:
    """Serve the rows of a store; nothing is read yet."""
    from .deferred import defer

    return defer(store, clock)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables of the kernel's rows and of what stands beside them."""
    from .schemas import KERNEL, MEMORY, PERSONS, RETENTION, SEARCH, UPLOADS

    return KERNEL, MEMORY, RETENTION, PERSONS, SEARCH, UPLOADS


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what takes out rows that are older than 90 days."""
    from .deferred import warm_up
    from .service import RetentionService

    service = RetentionService()
    yield ServiceSpec("retention", service.start, service.stop, warm_up)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the rows of a store."""
    yield RecordsBackend("store", open_records)
