"""What is told of providers, by their slugs, and of files, by their ids."""

from __future__ import annotations

from agenthost import Event


class ProviderKeysChanged(Event):
    """So many keys of it are kept from now on.

    They are no rows: what is recorded of it is written before they are.
    """

    keys: int


class ProviderTried(Event):
    """Somebody tries it out, which costs a call: recorded before it is made."""


class FileEvent(Event):
    """What becomes of a file that was handed to an agent; its bytes are not told."""

    agent_id: str
    name: str
    type: str
    size: int


class FileUploaded(FileEvent):
    """It is there."""


class FileDeleted(FileEvent):
    """It was deleted; those of an agent that is deleted go without a word."""
