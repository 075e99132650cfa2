"""Matrix: rooms of a homeserver, without encryption."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Matrix

    return Matrix


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer Matrix."""
    yield ChannelSpec("matrix", _load)
