"""Telegram: a bot, by long poll or webhook."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Telegram

    return Telegram


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer Telegram."""
    yield ChannelSpec("telegram", _load)
