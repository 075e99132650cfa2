"""Long conversations are condensed, so that they stay within the model's window."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import (
    Backend,
    Compaction,
    CompactionBackend,
    ConfigSection,
    Host,
    Observers,
    hookimpl,
)


def open_compaction(host: Host, observers: Observers) -> Compaction:
    """Condense with the agents' own models."""
    from .summary import SummaryCompaction

    return SummaryCompaction(host, observers)


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read when to condense."""
    from .settings import CompactionSection

    yield ConfigSection("compaction", CompactionSection)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer summaries."""
    yield CompactionBackend("summary", open_compaction)
