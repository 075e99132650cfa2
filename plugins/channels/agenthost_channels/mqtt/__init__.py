"""MQTT: one conversation a topic."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import ChannelSpec, hookimpl


def _load() -> type:
    from .adapter import Mqtt

    return Mqtt


@hookimpl
def register_channel() -> Iterable[ChannelSpec]:
    """Offer MQTT."""
    yield ChannelSpec("mqtt", _load)
