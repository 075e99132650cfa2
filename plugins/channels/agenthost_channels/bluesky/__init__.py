"""Bluesky: posts that mention or answer us, and direct messages."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Bluesky

    return Bluesky


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer Bluesky."""
    yield ChannelSpec("bluesky", _load)
