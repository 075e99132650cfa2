"""What happened, as it is told to this process and to plugins: a class for each kind.

A kind is a subclass of :class:`Event`, frozen as a dataclass is; its fields hold JSON
values and its ``kind`` is its name in snake case. Whoever causes something publishes
it; plugins tell of their own things by kinds of their own, or by :class:`Custom`. A
base with several kinds stands for all of them where a listener names what it hears.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields
from ssl import RAND_bytes
from typing import Any, ClassVar, TypedDict, dataclass_transform

from agenthost_values.value_class import late_dataclass


class Caused(TypedDict):
    """What an event says of who caused it."""

    by: str
    source: str
    depth: int


def new_id() -> str:
    """Make an id nobody can guess: a UUID of version 4, of which 120 bits are random.

    ``uuid4`` asks the system each time and lets the writer's thread in meanwhile: that
    costs a message a twelfth of its time. To make and write a ``UUID`` takes three
    times as long as this.
    """
    h = RAND_bytes(16).hex()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-8{h[17:20]}-{h[20:]}"


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Event:
    """Something that happened to the subject, at a time in epoch seconds.

    ``by`` (``kind:name``) caused it, "" when nobody did; ``source`` is the id of the
    agent in whose turn it was caused, if any; ``depth`` says how many events, each the
    cause of the next by what they set off, led there.
    """

    kind: ClassVar[str]
    subject: str
    at: float
    id: str = field(default_factory=new_id, kw_only=True)
    by: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    depth: int = field(default=0, kw_only=True)

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        # One without fields of its own needs no more: dataclasses take long to make.
        if "__annotations__" in vars(cls):
            late_dataclass(cls)


class LifecycleEvent(Event):
    """What becomes of an agent, told once it is on disk; the subject is its id."""

    name: str


class AgentSpawned(LifecycleEvent):
    """An agent came into being."""


class AgentUpdated(LifecycleEvent):
    """Its manifest was changed."""


class AgentSuspended(LifecycleEvent):
    """It takes no messages until it is resumed."""


class AgentResumed(LifecycleEvent):
    """It takes messages again, after it was suspended or has crashed."""


class AgentCrashed(LifecycleEvent):
    """Its own work has broken; it is started again by itself."""


class AgentTerminated(LifecycleEvent):
    """It was deleted."""


class MessageEvent(Event):
    """What becomes of a message to an agent, whose id is the subject."""

    agent: str
    session_id: str
    turn_id: str


class MessageReceived(MessageEvent):
    """It came from a principal and is on disk."""

    caller: str
    text: str


class TurnStarted(MessageEvent):
    """Its turn begins, or goes on after it was cut off."""


class TurnEnded(MessageEvent):
    """Its turn is closed on disk.

    ``state`` is a turn's: done, failed, cancelled or interrupted, or waiting where it
    goes on once a person has answered; ``text`` is the answer, ``error`` the code of
    what it failed with, ``finish`` why the model stopped: stop, length, content_filter
    or tool_calls, or nothing where it did not.
    """

    state: str
    text: str
    error: str
    input_tokens: int
    output_tokens: int
    cost_micro_usd: int
    finish: str = ""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class ToolEvent(Event):
    """What becomes of a tool call; the subject is the agent's id."""

    tool: str
    turn_id: str


class ToolCalled(ToolEvent):
    """A model calls it."""


class ToolEnded(ToolEvent):
    """It has an outcome, ``seconds`` after its step began.

    ``text`` holds its first 200 characters.
    """

    is_error: bool
    seconds: float
    text: str


class ToolDenied(ToolEvent):
    """It was not made: a ``right``, a ``guard`` or an ``approval`` was in the way.

    ``reason`` holds the first 200 characters of what the model is told.
    """

    denied_by: str
    reason: str


class MemoryChanged(Event):
    """A key was ``set`` or ``deleted``; the subject is an agent's id or ``shared``."""

    key: str
    operation: str


class SystemEvent(Event):
    """What becomes of the daemon itself."""


class DaemonStarted(SystemEvent):
    """It serves; the subject is where it listens."""


class DaemonStopping(SystemEvent):
    """It takes no new work."""


class HealthChanged(SystemEvent):
    """Its health is ``ok`` or ``degraded`` now."""

    status: str


class PluginFailed(SystemEvent):
    """A plugin, the subject, failed while the daemon ran."""

    reason: str


class QuotaEvent(Event):
    """A limit of an agent or the daemon; ``unit`` is tokens or micro_usd."""

    limit: str
    unit: str
    used: int
    of: int


class BudgetAlert(QuotaEvent):
    """So much is used that an alert is due; once in the limit's span."""


class BudgetExceeded(QuotaEvent):
    """A call was refused."""


class Custom(Event):
    """Whatever an agent or a plugin tells."""

    type: str
    data: dict[str, Any]


def as_json(event: Event) -> dict[str, Any]:
    """Write an event as every surface shows it: what all have, and the rest as data."""
    data = asdict(event)
    told = {each.name: data.pop(each.name) for each in fields(Event)}
    return {"kind": event.kind, **told, "data": data}
