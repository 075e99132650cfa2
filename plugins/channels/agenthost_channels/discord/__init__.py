"""Discord: a bot in direct messages, channels of guilds, and their threads."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Discord

    return Discord


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer Discord."""
    yield ChannelSpec("discord", _load)
