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


class McpPlaceEvent(Event):
    """What becomes of a server: its ``url``."""

    url: str


class McpServerAdded(McpPlaceEvent):
    """It is one of the daemon's from now on."""


class McpServerRemoved(McpPlaceEvent):
    """It is none any more, and its tools are gone."""


class McpLoginEvent(Event):
    """What becomes of a login: who has issued its tokens, and for which scopes."""

    issuer: str
    scope: str


class McpServerLoggedIn(McpLoginEvent):
    """A person has logged the daemon in."""


class McpServerLoggedOut(McpLoginEvent):
    """A person has had the tokens forgotten."""
