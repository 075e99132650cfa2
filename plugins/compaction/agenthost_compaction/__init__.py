"""Long conversations are condensed, so that they stay within the model's window."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import BackendSpec, Compaction, Daemon, Port, hookimpl


def open_compaction(daemon: Daemon) -> Compaction:
    """Condense with the agents' own models."""
    from .summary import SummaryCompaction

    return SummaryCompaction(daemon)


@hookimpl
def register_backend() -> Iterable[BackendSpec]:
    """Offer summaries."""
    yield BackendSpec(Port.COMPACTION, "summary", open_compaction)
