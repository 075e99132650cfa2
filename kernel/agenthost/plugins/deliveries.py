"""Ways to deliver what came of work that nobody waited for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field

from agenthost_chat.chat import JsonObject
from agenthost_values.value_class import value_class

from ..context import Context
from ..host import Host


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
