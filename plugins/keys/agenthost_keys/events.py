"""What is told of named keys, once it is on disk; the subject is the key's id."""

from __future__ import annotations

from agenthost import Event


class KeyEvent(Event):
    """What becomes of a named key."""


class KeyCreated(KeyEvent):
    """It holds from now on."""

    name: str
    scopes: list[str]


class KeyRevoked(KeyEvent):
    """It holds no more."""
