"""What an event comes to: written in the very commit of the event's cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agenthost import (
    UNTRUSTED,
    DaemonStarted,
    DaemonStopping,
    Event,
    HealthChanged,
    JsonObject,
    Keep,
    LifecycleEvent,
    QuotaEvent,
)
from agenthost_values.value_class import value_class

from ..background.errands import Occasion, OccasionState
from .events import TriggerDeleted, TriggerEvent, TriggerFired
from .trigger import MOST_DEPTH, MOST_FIRINGS, Trigger

if TYPE_CHECKING:
    from sqlalchemy import Connection

SOURCE = "trigger"
FIRED = "fired"
TOO_DEEP = "depth"
TOO_MANY = "many"
NOTED_EVERY = 3_600.0
"""What holds a trigger back at each of many events is written down once an hour."""
WHY = {
    TOO_DEEP: f"{MOST_DEPTH} events, each set off by the one before, led to this one",
    TOO_MANY: f"{MOST_FIRINGS} other triggers fired at this event already",
}
OUR_OWN = (
    LifecycleEvent,
    DaemonStarted,
    DaemonStopping,
    HealthChanged,
    QuotaEvent,
    TriggerEvent,
)
"""Kinds that hold no words of strangers."""


def labels_of(event: Event) -> frozenset[str]:
    """Tell where the words of an event come from."""
    return frozenset() if isinstance(event, OUR_OWN) else UNTRUSTED


@value_class
class Candidate:
    """A trigger that waits for an event.

    Args:
        trigger: As it was known when the event came.
        rest: For how many seconds after a firing it does not fire for a subject.
        told: What is told of its firing, where anybody listens.
        keep: What others keep of that.
    """

    trigger: Trigger
    rest: float
    told: TriggerFired | None = None
    keep: Keep | None = None


@value_class
class Firing:
    """What is written of an event; run in a transaction, perhaps twice.

    Args:
        event: As JSON.
        labels: Where its words come from.
        now: The time.
        candidates: Who waits for it, oldest first.
        ends: The agent whose triggers go with it, "" for none.
        ended: What is told of that, once for each of them.
        keeps: What others keep of it.
        write: Writes occasions.
        ran: Called in the writer's thread, before the commit, when something is new.
        fresh: The triggers that fired in the last run.
    """

    event: JsonObject
    labels: frozenset[str]
    now: float
    candidates: Sequence[Candidate]
    ends: str
    ended: Sequence[TriggerDeleted]
    keeps: Sequence[Keep]
    write: Callable[[Connection, Sequence[Occasion]], object]
    ran: Callable[[Firing], None]
    fresh: set[str] = field(default_factory=set)

    @property
    def event_id(self) -> str:
        """The event's."""
        return str(self.event["id"])

    def __call__(self, connection: Connection) -> None:
        """Decide by what is on disk, and write it down."""
        from .writes import remove_of

        self.fresh.clear()
        if self.ends:
            remove_of(connection, self.ends)
            for keep in self.keeps:
                keep(connection)
        if found := list(self._noted(connection)):
            self.write(connection, found)
            due = (each for each in found if each.state is OccasionState.DUE)
            self.fresh.update(each.source_id for each in due)
        if found or self.ends:
            self.ran(self)

    def _noted(self, connection: Connection) -> Iterator[Occasion]:
        from .writes import Note, fired_at, note

        # It may have been told before: those that fired then count as well.
        fired = fired_at(connection, self.event_id)
        facts: Any = self.event
        for each in self.candidates:
            outcome = self._outcome(fired)
            noted = Note(
                event_id=self.event_id,
                subject=facts["subject"],
                outcome=outcome,
                now=self.now,
                rest=each.rest,
                owner=facts["by"],
                labels=self.labels,
            )
            if not note(connection, each.trigger.id, noted):
                continue
            if outcome == FIRED:
                fired += 1
                if each.keep is not None:
                    each.keep(connection)
            yield self._occasion(each.trigger, outcome)

    def _outcome(self, fired: int) -> str:
        depth: Any = self.event["depth"]
        if depth >= MOST_DEPTH:
            return TOO_DEEP
        return FIRED if fired < MOST_FIRINGS else TOO_MANY

    def _occasion(self, trigger: Trigger, outcome: str) -> Occasion:
        facts: Any = self.event
        due = outcome == FIRED
        return Occasion(
            id=str(uuid4()),
            source=SOURCE,
            source_id=trigger.id,
            key=self.event_id,
            payload=self.event,
            at=facts["at"],
            state=OccasionState.DUE if due else OccasionState.REFUSED,
            detail="" if due else WHY[outcome],
            code="" if due else outcome,
            created_at=self.now,
            ended_at=None if due else self.now,
            owner=facts["by"],
            labels=self.labels | trigger.labels,
        )
