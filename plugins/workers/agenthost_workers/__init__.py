"""Work that must not hold the event loop: threads, and processes that can be ended."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import BackendSpec, Port, Workers, hookimpl


def open_workers() -> Workers:
    """Serve threads and processes of this machine; nothing is started yet."""
    from .local import LocalWorkers

    return LocalWorkers()


@hookimpl
def register_backend() -> Iterable[BackendSpec]:
    """Offer threads and processes of this machine."""
    yield BackendSpec(Port.WORKERS, "local", open_workers)
