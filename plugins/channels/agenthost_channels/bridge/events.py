"""What is told of channels; the subject is the channel's id."""

from __future__ import annotations

from agenthost import Event


class ChannelMessageLost(Event):
    """A message did not arrive, or nobody knows: ``state`` is failed or unknown."""

    outbox_id: str
    state: str
    reason: str
