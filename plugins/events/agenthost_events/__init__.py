"""What happened is told to this process and to plugins, in memory and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agenthost import (
    Backend,
    Bus,
    EventsBackend,
    GuardPoint,
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


@hookimpl
def register_guard_point() -> Iterable[GuardPoint[Any]]:
    """Offer the point where whatever is recorded is asked about."""
    from .audit import AUDIT

    yield AUDIT
