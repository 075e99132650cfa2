"""A webhook: any program, with signed requests both ways."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Webhook

    return Webhook


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer the webhook."""
    yield ChannelSpec("webhook", _load)
