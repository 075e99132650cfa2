"""What is told of servers; the subject is the server's name."""

from __future__ import annotations

from agenthost import Event


class McpEvent(Event):
    """What becomes of a server's ``tools``, as it calls them; "" is its launch."""

    tools: list[str]


class McpServerPinned(McpEvent):
    """These are agreed to, as they were met at first."""


class McpServerApproved(McpEvent):
    """A person has approved these, new or changed."""
