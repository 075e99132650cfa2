"""What is told of occasions, kept in the commit of each; the subject is a source."""

from __future__ import annotations

from agenthost import Event


class OccasionEvent(Event):
    """What becomes of an occasion; ``state`` is where it stands from now on."""

    occasion_id: str
    kind_of_source: str
    state: str
    detail: str
    turn_id: str
    run_id: str
    cost_micro_usd: int


class OccasionStarted(OccasionEvent):
    """It is being done."""


class OccasionWaits(OccasionEvent):
    """Its turn waits for a person."""


class OccasionEnded(OccasionEvent):
    """It is done, or will not be."""


class OccasionDelivered(OccasionEvent):
    """Its result was delivered, or was not: ``detail`` is ``done`` or says why."""
