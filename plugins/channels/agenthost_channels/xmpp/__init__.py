"""XMPP: chats and rooms, over TLS, with an archive for what was missed."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Xmpp

    return Xmpp


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer XMPP."""
    yield ChannelSpec("xmpp", _load)
