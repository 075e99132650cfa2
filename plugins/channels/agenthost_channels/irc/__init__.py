"""IRC: channels and private messages, over TLS, with SASL."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Irc

    return Irc


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer IRC."""
    yield ChannelSpec("irc", _load)
