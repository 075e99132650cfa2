"""What plugins hand to the kernel: frozen dataclasses that carry async functions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from agenthost_chat.chat import JsonObject, ToolDefinition
from agenthost_chat.schema import tool_schema
from pydantic import BaseModel

from ..errors import PluginError
from ..host import Host, ToolContext

if TYPE_CHECKING:
    import click
    from sqlalchemy import MetaData

    from ..agent import Agent


_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Effect(StrEnum):
    """What a tool does to the world: nothing, something here, something outside."""

    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model reads; ``is_error`` marks a failure it should know of."""

    text: str
    is_error: bool = False


ToolFunction = Callable[[ToolContext, Any], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool on offer.

    Args:
        name: As models and manifests name it.
        description: One or two sentences for the model.
        input: The pydantic model of its arguments.
        effect: READ tools of one step run concurrently; others run in order.
        call: ``async (context, arguments) -> ToolResult``; an AgentHostError that it
            raises becomes an error result with that message.
        idempotent: Whether running it twice is the same as once; otherwise it is
            never repeated after a crash.
        timeout: Seconds a call may take.
        aliases: Other names that manifests and models may use.

    Attributes:
        schema: The JSON Schema of its arguments.

    Raises:
        PluginError: A name is none that every provider takes.
    """

    name: str
    description: str
    input: type[BaseModel]
    effect: Effect
    call: ToolFunction
    idempotent: bool = False
    timeout: float = 120.0
    aliases: tuple[str, ...] = ()
    schema: JsonObject = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in self.names:
            if not _TOOL_NAME.fullmatch(name):
                raise PluginError(f"tool {name!r} must be 1 to 64 of A-Z a-z 0-9 _ -")
        object.__setattr__(self, "schema", tool_schema(self.input))

    @property
    def definition(self) -> ToolDefinition:
        """The tool as a model sees it."""
        return ToolDefinition(self.name, self.description, self.schema)

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class SchemaSpec:
    """The plugin's own tables: ``steps`` bring any older version to ``metadata``.

    Each step is ``step(op)`` over alembic's operations, run once, in order, in one
    transaction; a fresh database gets ``metadata`` as it stands. Tables must be named
    after the plugin.
    """

    name: str
    metadata: MetaData
    steps: tuple[Callable[[Any], None], ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """A section of ``config.toml``; ``host.settings(model)`` gives what it says.

    Args:
        name: ``"acme"`` for ``[acme]``, ``"web.fetch"`` for ``[web.fetch]``: words in
            lower case, joined by dots or ``_``. It should be the plugin's slug.
        model: Its keys with their defaults and descriptions. Other keys are warned of.
            A root model stands for a list of tables, or for tables by name. A key of
            the type ``Secret`` is shown nowhere.
    """

    name: str
    model: type[BaseModel]


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """Something that runs as long as the daemon.

    ``start`` is awaited after the store is open and before the first request;
    ``stop`` when turns have ended.
    """

    name: str
    start: Callable[[Host], Awaitable[None]]
    stop: Callable[[Host], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command of ``agenthost``: a click command or group."""

    command: click.Command


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """What a message that starts with ``/name`` does, instead of a turn.

    Args:
        name: Lower case, without the slash.
        help: One line that ``/help`` shows.
        run: ``async (call, agent, argument) -> str``: who gives the command and the
            daemon, the agent it is given to, what stands behind the name. It returns
            the answer's text; an AgentHostError is told as it is.
        argument: What may stand behind the name, for ``/help``: ``<name>``.
        timeout: Seconds it may take; what follows in the same chat waits for it.
    """

    name: str
    help: str
    run: Callable[[ToolContext, Agent, str], Awaitable[str]]
    argument: str = ""
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Card:
    """A card of the chat page; ``path`` is the route that tells its contents."""

    name: str
    title: str
    path: str
