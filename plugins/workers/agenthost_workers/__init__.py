"""Work that must not hold the event loop: threads, and processes that can be ended."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import Backend, Workers, WorkersBackend, hookimpl


def open_workers() -> Workers:
    """Serve threads and processes of this machine; nothing is started yet."""
    from .local import LocalWorkers

    return LocalWorkers()


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer threads and processes of this machine."""
    yield WorkersBackend("local", open_workers)
