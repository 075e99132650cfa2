"""What comes of an occasion, and how it is told and written."""

from __future__ import annotations

import json
import logging
from functools import partial

from agenthost import (
    AgentHostError,
    Cancelled,
    Context,
    Event,
    Host,
    JsonObject,
    Keep,
    TurnRecord,
    TurnState,
    Waiting,
)
from agenthost_values.value_class import value_class

from .errands import OPEN, Occasion, OccasionState
from .events import OccasionEnded, OccasionEvent, OccasionStarted, OccasionWaits
from .runner import RunEnd

log = logging.getLogger(__name__)

NOT_GRANTED = "not_granted"
"""The code of what a person was asked for money for, who has not said yes."""
LONGEST_TEXT = 64 * 1024
"""So many characters of a result are kept; the session has all of it."""
KIND_OF = {
    OccasionState.RUNNING: OccasionStarted,
    OccasionState.WAITING: OccasionWaits,
}


@value_class
class Outcome:
    """What came of an occasion.

    Args:
        state: Where it stands now.
        detail: Why, for a person.
        code: The error's, where it failed.
        text: What came of it.
        labels: Those of that.
        cost: What it took, where only its turn or run knows.
        run_id: The workflow's run that it was.
        pauses: Why its source is to be paused, "" when it goes on.
    """

    state: OccasionState
    detail: str = ""
    code: str = ""
    text: str = ""
    labels: frozenset[str] = frozenset()
    cost: int = 0
    run_id: str = ""
    pauses: str = ""


def refused(error: AgentHostError, pauses: str = "") -> Outcome:
    """It is not begun."""
    state = OccasionState.REFUSED
    return Outcome(state, error.message, error.code, pauses=pauses)


def failed(error: AgentHostError) -> Outcome:
    """It was begun, and ended so."""
    match error:
        case Waiting():
            return Outcome(OccasionState.WAITING, error.message)
        case Cancelled():
            return Outcome(OccasionState.CANCELLED, error.message, error.code)
    return Outcome(_state_of(error.code), error.message, error.code)


def _state_of(code: str) -> OccasionState:
    """How what has failed ends: what a person gave no money for is refused."""
    return OccasionState.REFUSED if code == NOT_GRANTED else OccasionState.FAILED


def of_record(record: TurnRecord) -> Outcome | None:
    """What came of a turn that has ended, or waits; None when it is to go on."""
    result, error = record.result, record.error
    match record.state:
        case TurnState.DONE:
            return Outcome(
                OccasionState.DONE,
                text=result.text,
                labels=result.labels,
                cost=result.cost_micro_usd,
            )
        case TurnState.WAITING:
            return Outcome(OccasionState.WAITING, "its turn waits for a person")
        case TurnState.CANCELLED:
            state, detail = OccasionState.CANCELLED, "the turn was stopped"
        case TurnState.FAILED:
            code = record.error.code if record.error else ""
            state, detail = _state_of(code), "the turn failed"
        case _:
            return None
    told = (error.message, error.code) if error is not None else (detail, "")
    return Outcome(state, *told, labels=result.labels, cost=result.cost_micro_usd)


def of_run(run_id: str, run: RunEnd) -> Outcome:
    """What came of a workflow's run; one that has not ended waits for a person."""
    told = partial(Outcome, cost=run.cost_micro_usd, run_id=run_id)
    if not run.ended:
        return told(OccasionState.WAITING, "its run waits for a person")
    match run.state:
        case "Completed":
            return told(OccasionState.DONE, text=run.output or "")
        case "Cancelled":
            state = OccasionState.CANCELLED
        case _:
            state = _state_of(run.code)
    reason = run.error or f"the run ended {run.state}"
    return told(state, reason, run.code, run.output or "")


def columns_of(occasion: Occasion, outcome: Outcome, now: float) -> JsonObject:
    """Write an outcome as columns of the occasion's row."""
    labels = sorted(occasion.labels | outcome.labels)
    return {
        "state": outcome.state.value,
        "detail": outcome.detail[:LONGEST_TEXT],
        "code": outcome.code,
        "text": outcome.text[:LONGEST_TEXT],
        "labels": json.dumps(labels),
        "cost_micro_usd": max(outcome.cost, occasion.cost_micro_usd),
        "ended_at": None if outcome.state in OPEN else now,
        **({"run_id": outcome.run_id} if outcome.run_id else {}),
    }


def event_of(
    occasion: Occasion, outcome: Outcome, context: Context, now: float
) -> OccasionEvent:
    """What is told of it."""
    kind = KIND_OF.get(outcome.state, OccasionEnded)
    return kind(
        occasion.source_id,
        now,
        occasion_id=occasion.id,
        kind_of_source=occasion.source,
        state=outcome.state.value,
        detail=outcome.detail,
        turn_id=occasion.turn_id,
        run_id=outcome.run_id or occasion.run_id,
        cost_micro_usd=max(outcome.cost, occasion.cost_micro_usd),
        **context.caused,
    )


def keeps_of(host: Host, event: Event) -> tuple[Keep, ...]:
    """What others keep of an event; what has happened cannot be refused any more."""
    try:
        keep = host.events.keeping(event)
    except AgentHostError as error:
        log.warning("nothing is kept of %s: %s", event.kind, error.message)
        return ()
    return () if keep is None else (keep,)
