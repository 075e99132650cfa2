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
    from .agents import AgentTable
    from .journal import TurnJournal
    from .memory import KeyValues
    from .persons import PersonTable
    from .sessions import SessionTable
    from .usage import UsageLedger
    from .writers import Seat

    seat = Seat()
    return Records(
        agents=AgentTable(store),
        sessions=SessionTable(store, clock, seat),
        journal=TurnJournal(store, clock, seat),
        usage=UsageLedger(store),
        memory=KeyValues(store, clock),
        persons=PersonTable(store, clock),
    )


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables of the kernel's rows, memory, retention, people, search."""
    from .forgetting import RETENTION
    from .persons import PERSONS
    from .tables import KERNEL, MEMORY
    from .texts import SEARCH

    return KERNEL, MEMORY, RETENTION, PERSONS, SEARCH


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what takes out rows that are older than 90 days."""
    from .retention import RetentionService

    service = RetentionService()
    yield ServiceSpec("retention", service.start, service.stop)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the rows of a store."""
    yield RecordsBackend("store", open_records)
