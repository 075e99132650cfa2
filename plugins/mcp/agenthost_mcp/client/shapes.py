"""What the routes of servers take and give."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from .settings import ServerName, ServerUrl

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
    """A server, and how it is doing; ``added``: not by the configuration."""

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
    added: bool


class ServerList(TypedDict):
    """All servers."""

    servers: list[ServerShown]
    total: int


class ServerGone(TypedDict):
    """The server that was removed; ``status`` is removed."""

    status: str
    name: str


class LoginStarted(TypedDict):
    """What a person opens, and where the browser comes back to within ten minutes."""

    url: str
    issuer: str
    redirect_uri: str
    scope: str


class AddServer(BaseModel, extra="forbid", defer_build=True):
    """A server behind an address; programs stand in the configuration alone."""

    name: ServerName = Field(description="Its tools are called `mcp_<name>_<tool>`.")
    url: ServerUrl = Field(description="Its address; it may be a local one.")
    type: Literal["http", "sse"] = Field(
        "http", description="Streamable HTTP, or the older HTTP with SSE."
    )
    timeout_secs: float = Field(
        30.0, gt=0, le=3600, description="So long a call may give no sign of life."
    )
    max_call_secs: float = Field(
        600.0, gt=0, le=86_400, description="A call ends then, whatever it reports."
    )
    elicitation: bool = Field(
        default=False, description="Whether it may have a person asked for values."
    )
    sampling: bool = Field(
        default=False, description="Whether it may have the agent's model asked."
    )


class Approve(BaseModel, extra="forbid", defer_build=True):
    """A yes to all that is pending, as it was read."""

    digest: str = Field(description="The digest that was shown with it", max_length=64)
