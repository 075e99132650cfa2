"""Nostr: direct messages over relays, encrypted end to end."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Nostr

    return Nostr


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer Nostr."""
    yield ChannelSpec("nostr", _load)
