"""What happened is told to this process and to plugins, in memory and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenthost import (
    Backend,
    Bus,
    EventsBackend,
    Host,
    Observer,
    ServiceSpec,
    hookimpl,
)


def open_bus(host: Host, observers: Sequence[tuple[str, Observer]]) -> Bus:
    """Serve the events of one process."""
    from .bus import EventBus

    return EventBus(host, observers)


async def start(host: Host) -> None:
    """Tell of turns that begin, now that there is what runs them."""
    from .telling import tell_of_turns

    tell_of_turns(host)


async def stop(_: Host) -> None:
    """Nothing is left: turns end before the events do."""


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the bus of one process."""
    yield EventsBackend("memory", open_bus)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer the events of turns that begin."""
    yield ServiceSpec("turn events", start, stop)
