"""Slack: an app, by Socket Mode or the Events API."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Slack

    return Slack


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer Slack."""
    yield ChannelSpec("slack", _load)
