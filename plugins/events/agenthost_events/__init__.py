"""What happened is told to this process and to plugins, in memory and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenthost import (
    Backend,
    Bus,
    EventsBackend,
    Host,
    Observer,
    hookimpl,
)


def open_bus(host: Host, observers: Sequence[tuple[str, Observer]]) -> Bus:
    """Serve the events of one process."""
    from .bus import EventBus

    return EventBus(host, observers)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the bus of one process."""
    yield EventsBackend("memory", open_bus)
