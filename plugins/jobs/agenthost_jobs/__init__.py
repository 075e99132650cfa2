"""Durable work that happens once: submit with a unique key, step, cancel, get, list.

A job survives the process. Whatever was running at a crash runs again with a higher
epoch; steps that had finished give their remembered output instead of running again,
and a step of the older epoch can no longer commit. What fails is tried again after a
pause; what kills its process again and again is given up.
"""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import Backend, Clock, Jobs, JobsBackend, SchemaSpec, Store, hookimpl


def open_jobs(store: Store, clock: Clock) -> Jobs:
    """Serve the jobs of a store from this process alone."""
    from .queue import EmbeddedJobs

    return EmbeddedJobs(store, clock)


@hookimpl
def register_schema() -> SchemaSpec:
    """Offer the tables of jobs and their steps."""
    from .schema import SCHEMA

    return SCHEMA


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the embedded queue."""
    yield JobsBackend("embedded", open_jobs)
