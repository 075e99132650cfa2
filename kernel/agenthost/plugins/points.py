"""Guard points, each with its case: where something may be refused, and what is asked.

A point belongs to who owns the one place where it is asked. The kernel knows those of
its own ports; a plugin offers further ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Generic, TypeVar

from agenthost_chat.chat import Message
from agenthost_values.value_class import value_class

from ..context import Context, Principal

Case = TypeVar("Case")


# Compared by identity: a point is what its owner registered, not what is named alike.
@dataclass(frozen=True, slots=True, eq=False)
class GuardPoint(Generic[Case]):
    """A place where guards are asked.

    Args:
        name: What guards name it by.
        case: The frozen dataclass that they are asked.
        what: What it lets pass or refuses, in the words of a refusal.
        requires: The security systems without which it refuses everything.
        replaceable: The field of the case into which a guard may put another value of
            its type; none when it is empty.
        asks: Whether a guard may have a person asked.
        effects: Whether what follows reaches beyond the conversation (files, the
            network, new agents). Such a point also refuses everything while a security
            plugin has failed before it said what it guards.
    """

    name: str
    case: type[Case]
    what: str
    requires: tuple[str, ...] = ()
    replaceable: str = ""
    asks: bool = False
    effects: bool = False

    def __str__(self) -> str:
        return self.name

    def refusal(self, why: str) -> str:
        """Say that everything is refused here, why, and the remedy."""
        return f"{self.what} is refused: {why}; enable or mend its plugin and restart"


@value_class
class RequestCase:
    """An HTTP request or WebSocket upgrade, asked by the ASGI layer before routing.

    ``cost`` is the route's rate cost in units; ``client`` the peer's address. A wrong
    key is asked of besides, as the method ``LOGIN``; a message on a WebSocket is
    ``MESSAGE``; ``KEY`` with a negative cost gives back what a named key has paid for.
    """

    method: str
    path: str
    client: str
    cost: int


@value_class
class ManifestCase:
    """A manifest before an agent is made or changed; asked off the loop."""

    principal: Principal
    manifest_toml: str
    name: str


@value_class
class SpawnCase:
    """An agent about to come into being, asked by the agent registry.

    ``grants`` are the rights its manifest asks for, by action.
    """

    principal: Principal
    name: str
    grants: Mapping[str, tuple[str, ...]]


@value_class
class ToolCallCase:
    """A tool call about to start, asked by what runs tools.

    ``accepts`` are the labels its context may carry, as the tool's plugin says, None
    for any; ``critical`` the arguments that decide what it does to the world.
    """

    context: Context
    tool: str
    effect: str
    arguments: Mapping[str, Any]
    accepts: frozenset[str] | None = None
    critical: tuple[str, ...] = ()


@value_class
class ToolResultCase:
    """What a tool says, errors too, before the model reads it; asked by what runs it.

    ``labels`` are those of the result, before the turn carries them; ``arguments`` are
    what the model called it with.
    """

    context: Context
    tool: str
    text: str
    labels: frozenset[str] = frozenset()
    arguments: Mapping[str, Any] = field(default_factory=dict)


@value_class
class HistoryCase:
    """A conversation as it was read, before a turn goes on with it; asked by the turn.

    What a turn leaves to the next one in memory is not asked again. ``spoken`` is what
    of it the turn has said itself, where it goes on after it was cut off.
    """

    context: Context
    messages: tuple[Message, ...]
    spoken: tuple[Message, ...] = ()


@value_class
class PathCase:
    """A path relative to an agent's workspace, asked by the backend of FILES.

    ``context`` is whose turn it is for, None where no turn is the cause.
    """

    path: PurePosixPath
    write: bool
    context: Context | None = None


@value_class
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


@value_class
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


_SPAWN = ("capability_inheritance_validation",)
_PATH = ("path_traversal_prevention",)
_SSRF = ("ssrf_protection",)


class Guard:
    """The points that the kernel knows; each is asked at the place its case names."""

    REQUEST = GuardPoint("request", RequestCase, "the request")
    MANIFEST = GuardPoint("manifest", ManifestCase, "the manifest")
    SPAWN = GuardPoint("spawn", SpawnCase, "the agent", _SPAWN, effects=True)
    TOOL_CALL = GuardPoint("tool_call", ToolCallCase, "the tool call", asks=True)
    TOOL_RESULT = GuardPoint(
        "tool_result", ToolResultCase, "the result", replaceable="text"
    )
    HISTORY = GuardPoint(
        "history", HistoryCase, "the conversation", replaceable="messages"
    )
    PATH = GuardPoint("path", PathCase, "file access", _PATH, effects=True)
    URL = GuardPoint("url", UrlCase, "the outbound request", _SSRF, effects=True)
    ADDRESS = GuardPoint("address", AddressCase, "the connection", _SSRF, effects=True)


KNOWN = tuple(each for each in vars(Guard).values() if isinstance(each, GuardPoint))
