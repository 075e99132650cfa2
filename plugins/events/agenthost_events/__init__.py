"""What happened is told to this process and to plugins, in memory and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenthost import BackendSpec, Clock, Events, Observer, Plugins, Port, hookimpl


def open_bus(
    plugins: Plugins, clock: Clock, observers: Sequence[tuple[str, Observer]]
) -> Events:
    """Serve the events of one process."""
    from .bus import EventBus

    return EventBus(plugins, clock, observers)


@hookimpl
def register_backend() -> Iterable[BackendSpec]:
    """Offer the bus of one process."""
    yield BackendSpec(Port.EVENTS, "memory", open_bus)
