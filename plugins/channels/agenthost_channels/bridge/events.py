"""What is told of channels; the subject is the channel's id."""

from __future__ import annotations

from agenthost import Event


class ChannelPaired(Event):
    """A stranger was let in: ``sender`` may speak from now on, as a person."""

    sender: str
    person_id: str


class ChannelSwitched(Event):
    """Somebody has switched a channel off, or on again."""

    on: bool


class ChannelFileReceived(Event):
    """A file that somebody sent is put into a workspace: ``size`` is in bytes."""

    agent_id: str
    path: str
    media_type: str
    size: int


class ChannelMessageLost(Event):
    """A message did not arrive, or nobody knows: ``state`` is failed or unknown."""

    outbox_id: str
    state: str
    reason: str
