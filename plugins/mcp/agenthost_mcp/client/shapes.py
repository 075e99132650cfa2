"""What the routes of servers take and give."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

State = Literal["connecting", "connected", "disconnected", "quarantined"]


class ToolShown(TypedDict):
    """A tool that agents may get: its name is theirs."""

    name: str
    description: str


class PendingShown(TypedDict):
    """What waits for a person: a tool as the server calls it, "" its launch."""

    tool: str
    change: str
    flags: list[str]
    now: dict[str, Any]
    before: dict[str, Any] | None


class ServerShown(TypedDict):
    """A server of the configuration, and how it is doing."""

    name: str
    transport: str
    command: str
    args: list[str]
    url: str
    connected: bool
    tools: list[ToolShown]
    state: State
    reason: str
    protocol: str
    pending: list[PendingShown]
    digest: str


class ServerList(TypedDict):
    """All servers."""

    servers: list[ServerShown]
    total: int


class LoginStarted(TypedDict):
    """What a person opens, and where the browser comes back to within ten minutes."""

    url: str
    issuer: str
    redirect_uri: str
    scope: str


class Approve(BaseModel, extra="forbid"):
    """A yes to all that is pending, as it was read."""

    digest: str = Field(description="The digest that was shown with it", max_length=64)
