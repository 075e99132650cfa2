"""ntfy: topics of a notification server, ntfy.sh or one's own."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Ntfy

    return Ntfy


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer ntfy."""
    yield ChannelSpec("ntfy", _load)
