"""Mumble: text in a channel and privately, over TLS."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Mumble

    return Mumble


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer Mumble."""
    yield ChannelSpec("mumble", _load)
