"""Background work in words: what is to be done, on which terms, what came of it.

A source (triggers, schedules) writes an occasion for each time that something is to be
done; of one key there is one. The background runs each occasion once: it asks the
source for the errand, checks the rights of who asked for it and what it may spend, has
it done, delivers the result and writes what came of it.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Protocol

from agenthost import Host, JsonObject
from agenthost_values.value_class import value_class

DAILY_ALLOWANCE = 500_000
"""What a source may spend in a day unless it says otherwise, in micro-USD."""


class SessionMode(StrEnum):
    """Which conversation an errand's turn speaks in.

    OWN is the agent's own; NEW one of its own that ends with the turn; PERSISTENT one
    of the source, which goes on each time; ROLLING is that, kept to its last messages.
    """

    OWN = "own"
    NEW = "new"
    PERSISTENT = "persistent"
    ROLLING = "rolling"


@value_class
class Delivery:
    """Where a result goes: ``kind`` is none, session, webhook, or one that is offered.

    ``target`` is what the kind needs: a session's id, a URL, whatever it says.
    ``session`` without one is the agent's own.
    """

    kind: str = "none"
    target: str = ""


@value_class
class Creator:
    """Who asked for background work: its rights are looked up anew each time.

    ``kind`` and ``name`` are those of its principal; of an agent ``name`` is the id,
    for another may come to have its name. ``id`` is what else is known of it that is
    nobody else's, such as the id of a named key, "" for nothing.
    """

    kind: str
    name: str
    person: str = ""
    id: str = ""


@value_class
class Errand:
    """What is to be done at an occasion: a turn, a workflow or an event.

    Args:
        creator: With whose rights.
        agent_id: Whose turn it is, "" for none.
        prompt: What the agent is told.
        workflow_id: The workflow to run, "" for none.
        input: What it is run with.
        event: The ``type`` and ``data`` of a custom event to publish.
        session: The conversation of the turn.
        keep: How many messages a ROLLING one keeps.
        delivery: Where the result goes.
        allowance_micro_usd: What the source may spend in a day; never none.
        labels: Those of all that it is made from.
        depth: How many events led here.
        title: What a person calls the source, "" where it has no name.
    """

    creator: Creator
    agent_id: str = ""
    prompt: str = ""
    workflow_id: str = ""
    input: str = ""
    event: JsonObject | None = None
    session: SessionMode = SessionMode.NEW
    keep: int = 0
    delivery: Delivery = field(default_factory=Delivery)
    allowance_micro_usd: int = DAILY_ALLOWANCE
    labels: frozenset[str] = frozenset()
    depth: int = 0
    title: str = ""


class OccasionState(StrEnum):
    """What became of an occasion.

    DUE ones are still to be done; WAITING ones wait for a person. MISSED ones lay in a
    time when nothing ran, or were skipped by the source's policy; REFUSED ones were not
    begun (no right, no money, paused), or a person let them spend no more.
    """

    DUE = "due"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    MISSED = "missed"
    REFUSED = "refused"
    CANCELLED = "cancelled"


OPEN = frozenset({OccasionState.DUE, OccasionState.RUNNING, OccasionState.WAITING})
"""The states in which something is still to come."""


@value_class
class Occasion:
    """One time that something is to be done, and what came of it.

    Args:
        id: Its own.
        source: The kind of its source: ``trigger`` or ``schedule``.
        source_id: The source.
        key: What makes it one of its source: an event's id, a time.
        payload: What the source keeps to make the errand of.
        at: The epoch second that it belongs to.
        state: Where it stands.
        detail: Why, in words for a person; "" where all went well.
        code: The code of the error that it failed with, if any.
        turn_id: The turn that it became, if any.
        run_id: The workflow's run that it became, if any.
        text: What came of it.
        cost_micro_usd: What it took.
        delivered: "" while nothing was delivered, ``done``, or why it failed; what
            begins with ``unknown`` may have arrived.
        created_at: When it was written.
        ended_at: When it ended, None while it has not.
        owner: Who caused it.
        labels: Where what it is made from came from.
        agent_id: Whose turn it became, if any.
    """

    id: str
    source: str
    source_id: str
    key: str
    payload: JsonObject
    at: float
    state: OccasionState = OccasionState.DUE
    detail: str = ""
    code: str = ""
    turn_id: str = ""
    run_id: str = ""
    text: str = ""
    cost_micro_usd: int = 0
    delivered: str = ""
    created_at: float = 0.0
    ended_at: float | None = None
    owner: str = ""
    labels: frozenset[str] = frozenset()
    agent_id: str = ""


class Source(Protocol):
    """What writes occasions, and knows what is to be done at each."""

    kind: str

    async def errand(self, host: Host, occasion: Occasion) -> Errand:
        """Say what is to be done; it is asked again when the process died in between.

        Raises:
            NotFound: The source has been deleted.
            Denied: It is paused or disabled now.
        """

    async def ended(self, host: Host, occasion: Occasion) -> None:
        """Take note of what came of it; told at least once, after it is on disk."""

    async def pause(self, host: Host, source_id: str, reason: str) -> None:
        """Stop writing occasions until a person resumes it, and keep why."""
