"""What plugins hand to the kernel: frozen dataclasses that carry async functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from agenthost_chat.chat import Json, JsonObject, Medium, Text
from agenthost_values.value_class import value_class
from pydantic import BaseModel

from ..host import Host, ToolContext

if TYPE_CHECKING:
    import click
    from sqlalchemy import MetaData

    from ..agent import Agent
    from ..context import Context
    from ..manifest_model import Manifest


class Effect(StrEnum):
    """What a tool does to the world: nothing, something here, something outside."""

    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


@value_class
class ToolResult:
    """What the model reads; ``is_error`` marks a failure it should know of.

    Args:
        text: Words.
        is_error: Whether it failed.
        parts: Further words, pictures, sounds and files. A model that takes pictures
            in results sees them; whatever it does not take is named to it in words.
        structured: Any JSON value. The model reads it as JSON, unless the words are
            that same value.
        labels: Where it came from, such as ``untrusted``; the turn carries them on.
    """

    text: str = ""
    is_error: bool = False
    parts: tuple[Text | Medium, ...] = ()
    structured: Json = None
    labels: frozenset[str] = frozenset()


ToolFunction = Callable[[ToolContext, Any], Awaitable[ToolResult]]


@value_class
class ToolSpec:
    """A tool on offer.

    Args:
        name: As models and manifests name it.
        description: One or two sentences for the model.
        input: The pydantic model of its arguments; or their JSON Schema, an object's,
            and the arguments come as a dict that fits it.
        effect: READ tools of one step run concurrently; others run in order.
        call: ``async (context, arguments) -> ToolResult``; an AgentHostError that it
            raises becomes an error result with that message.
        idempotent: Whether running it twice is the same as once; otherwise it is
            never repeated after a crash.
        timeout: Seconds a call may take.
        aliases: Other names that manifests and models may use.
        output: The JSON Schema of what its results have as ``structured``; one that
            does not fit is an error to the model.
        labels: What each of its results is labelled with, errors of it too.
        accepts: The labels that a call may carry, for guards; None is any.
        critical: The arguments that decide what it does to the world, for guards.
        offered_to: Tells by its manifest whether an agent may have it at all, whatever
            its grants say; None is every agent.
    """

    name: str
    description: str
    input: type[BaseModel] | JsonObject
    effect: Effect
    call: ToolFunction
    idempotent: bool = False
    timeout: float = 120.0
    aliases: tuple[str, ...] = ()
    output: JsonObject | None = None
    labels: frozenset[str] = frozenset()
    accepts: frozenset[str] | None = None
    critical: tuple[str, ...] = ()
    offered_to: Callable[[Manifest], bool] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.name, *self.aliases)


@value_class
class SchemaSpec:
    """The plugin's own tables: ``steps`` bring any older version to ``metadata``.

    Each step is ``step(op)`` over alembic's operations, run once, in order, in one
    transaction; a fresh database gets ``metadata`` as it stands. Tables must be named
    after the plugin. ``tables`` is the metadata, or a function that imports and gives
    it: a start that finds every schema up to date does not call it.
    """

    name: str
    tables: MetaData | Callable[[], MetaData]
    steps: tuple[Callable[[Any], None], ...] = ()

    @property
    def metadata(self) -> MetaData:
        """The tables as they stand now."""
        return self.tables() if callable(self.tables) else self.tables


@value_class
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


@value_class
class ServiceSpec:
    """Something that runs as long as the daemon.

    ``start`` is awaited after the store is open and before the first request;
    ``stop`` when turns have ended. ``warm_up`` is called off the event loop soon after
    the daemon serves: it imports what the first requests need and the start does not.

    A turn that ``start`` begins runs when every service is up, so that all tools are
    there: to await its end in ``start`` would wait for ever.
    """

    name: str
    start: Callable[[Host], Awaitable[None]]
    stop: Callable[[Host], Awaitable[None]]
    warm_up: Callable[[], object] | None = None


@value_class
class CommandSpec:
    """A command of ``agenthost``: a click command or group."""

    command: click.Command


@value_class
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


@value_class
class Card:
    """A card of the chat page; ``path`` is the route that tells its contents."""

    name: str
    title: str
    path: str


@value_class
class ChannelSpec:
    """A chat channel: ``load`` imports and gives the class of its adapter.

    It is called where the channel is configured, never at the boot of a daemon that
    has no channel. ``agenthost_channels`` says what an adapter is.
    """

    name: str
    load: Callable[[], type]


@value_class
class Parcel:
    """A result on its way.

    Args:
        id: Its own: what comes twice has the same.
        target: Where it goes, as whoever asked for it has said.
        text: What came of the work.
        context: With whose rights it was done, and the labels of what it holds.
        facts: What else is known: its source, its state, its cost.
    """

    id: str
    target: str
    text: str
    context: Context
    facts: JsonObject = field(default_factory=dict)


@value_class
class DeliverySpec:
    """A way to deliver results.

    Args:
        name: What schedules and triggers call it by.
        deliver: ``async (host, parcel) -> None``: it returns once the parcel has
            arrived; the message of an AgentHostError that it raises is kept, and
            OutcomeUnknown says that nobody knows whether it has.
        repeatable: Whether a parcel that came twice is known by its id. Of others
            it stays unknown, after a crash, whether they have arrived.
        timeout: Seconds it may take.
    """

    name: str
    deliver: Callable[[Host, Parcel], Awaitable[None]]
    repeatable: bool = False
    timeout: float = 30.0
