"""Cases: what guards are asked, one frozen dataclass for each point of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..context import Context, Principal


@dataclass(frozen=True, slots=True)
class RequestCase:
    """An HTTP request or WebSocket upgrade, asked by the ASGI layer before routing.

    ``cost`` is the route's rate cost in units; ``client`` the peer's address.
    """

    method: str
    path: str
    client: str
    cost: int


@dataclass(frozen=True, slots=True)
class ManifestCase:
    """A manifest before an agent is made or changed; asked off the loop."""

    principal: Principal
    manifest_toml: str
    name: str


@dataclass(frozen=True, slots=True)
class SpawnCase:
    """An agent about to come into being, asked by the agent registry.

    ``grants`` are the rights its manifest asks for, by action.
    """

    principal: Principal
    name: str
    grants: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ToolCallCase:
    """A tool call about to start, asked by the turn engine."""

    context: Context
    tool: str
    effect: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResultCase:
    """What a tool says, errors too, before the model reads it; asked by the engine."""

    context: Context
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class PathCase:
    """A path relative to an agent's workspace, asked by the backend of FILES.

    ``context`` is whose turn it is for, None where no turn is the cause.
    """

    path: PurePosixPath
    write: bool
    context: Context | None = None


@dataclass(frozen=True, slots=True)
class UrlCase:
    """A URL about to be requested (each redirect anew), asked by the egress client.

    ``allowed_hosts`` are names and addresses the operator configured by hand;
    ``context`` is whose turn it is for, None where no turn is the cause.
    """

    scheme: str
    host: str
    port: int
    allowed_hosts: frozenset[str]
    context: Context | None = None


@dataclass(frozen=True, slots=True)
class AddressCase:
    """An address about to be connected to, asked by the egress transport's socket.

    ``context`` is that of the request that opens the connection; requests that use it
    again are asked at ``url`` alone.
    """

    host: str
    address: str
    port: int
    allowed_hosts: frozenset[str]
    context: Context | None = None
