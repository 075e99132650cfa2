"""What is written of triggers: functions of a connection, each in one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from agenthost import Conflict, InvalidInput, NotFound
from agenthost_values.value_class import value_class
from sqlalchemy import (
    REAL,
    Connection,
    Exists,
    Text,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from ..background.errands import SessionMode
from .firing import FIRED, NOTED_EVERY, TOO_DEEP
from .tables import firings, triggers
from .trigger import LONGEST_COOLDOWN, MOST, Trigger, row_of, trigger_of

KEPT = 2 * LONGEST_COOLDOWN
"""Seconds for which firings are known: longer than any trigger rests."""

ONE = select(triggers).where(triggers.c.id == bindparam("id"))
_COUNT = select(func.count()).select_from(triggers)
_ADD = insert(triggers)
_REMOVE = delete(triggers).where(triggers.c.id == bindparam("trigger"))
_REMOVE_OF = delete(triggers).where(triggers.c.agent_id == bindparam("agent"))
_LEFT_OF = select(triggers.c.id).where(triggers.c.agent_id == bindparam("agent"))
_KNOWN = exists().where(
    firings.c.event_id == bindparam("event"), firings.c.trigger_id == triggers.c.id
)


def _noted(outcome: str, subject: str, since: str) -> Exists:
    """Whether an outcome was noted of a trigger since a moment."""
    # A clock that was set back leaves firings ahead of it: those hold nothing back.
    return exists().where(
        firings.c.trigger_id == triggers.c.id,
        firings.c.subject == bindparam(subject),
        firings.c.outcome == bindparam(outcome),
        firings.c.at > bindparam(since),
        firings.c.at <= bindparam("now"),
    )


_NOTE = insert(firings).from_select(
    ["event_id", "trigger_id", "subject", "outcome", "at", "owner", "labels"],
    select(
        bindparam("event", type_=Text),
        triggers.c.id,
        bindparam("about", type_=Text),
        bindparam("so", type_=Text),
        bindparam("now", type_=REAL),
        bindparam("by", type_=Text),
        bindparam("tags", type_=Text),
    ).where(
        triggers.c.id == bindparam("trigger"),
        triggers.c.enabled == 1,
        ~_KNOWN,
        ~_noted("so", "about", "since"),
        ~_noted("fired", "subject", "rested"),
    ),
)
_LAST = triggers.c.fire_count + 1 == triggers.c.max_fires
_SPEND = (
    update(triggers)
    .where(triggers.c.id == bindparam("trigger"))
    .values(
        fire_count=triggers.c.fire_count + 1,
        last_fired_at=bindparam("now", type_=REAL),
        enabled=case((_LAST, 0), else_=triggers.c.enabled),
    )
)
_FIRED_AT = (
    select(func.count())
    .select_from(firings)
    .where(firings.c.event_id == bindparam("event"), firings.c.outcome == FIRED)
)
_SETTLED = (
    select(
        triggers,
        firings.c.trigger_id.label("noted"),
        firings.c.outcome,
        firings.c.subject,
        firings.c.at,
    )
    .select_from(firings.outerjoin(triggers, triggers.c.id == firings.c.trigger_id))
    .where(firings.c.event_id == bindparam("event"))
)
_FORGET = delete(firings).where(firings.c.at < bindparam("before"))


@value_class
class Note:
    """What is noted of a trigger at an event, unless it rests.

    Args:
        event_id: The event.
        subject: Whom the event is about; the trigger rests for them alone.
        outcome: FIRED, or what held it back, which is noted once in a while.
        now: The time.
        rest: For how many seconds it rests after a firing.
        owner: Who caused the event.
        labels: Where the event came from.
    """

    event_id: str
    subject: str
    outcome: str
    now: float
    rest: float
    owner: str
    labels: frozenset[str]


@value_class
class Settled:
    """What an event has come to, on disk.

    ``noted`` is the outcome of a trigger, its subject and its time; ``triggers`` are
    those as they stand now; ``left`` are the ids of triggers that an agent still has.
    """

    noted: Mapping[str, tuple[str, str, float]]
    triggers: Collection[Trigger]
    left: Collection[str]


def add(connection: Connection, trigger: Trigger) -> Trigger:
    """Keep a trigger.

    Raises:
        Conflict: There are too many, or one of this id.
        InvalidInput: It says not how many messages it keeps.
    """
    if connection.execute(_COUNT).scalar_one() >= MOST:
        raise Conflict(f"there are {MOST} triggers; delete one that is not needed")
    if connection.execute(ONE, {"id": trigger.id}).first():
        raise Conflict(f"there is a trigger with the id {trigger.id}")
    _check(trigger)
    connection.execute(_ADD, row_of(trigger))
    return trigger


def change(
    connection: Connection, trigger_id: str, changes: Mapping[str, Any]
) -> Trigger:
    """Change columns of a trigger; give it as it stands then.

    More fires than it has spent arm one that had spent them; fewer disable it.

    Raises:
        NotFound: There is none.
        InvalidInput: It cannot be enabled, since it has spent its fires, or it says not
            how many messages it keeps.
    """
    row = connection.execute(ONE, {"id": trigger_id}).mappings().first()
    if row is None:
        raise NotFound("trigger", trigger_id)
    now = trigger_of({**row, **changes})
    _check(now)
    values = {**changes, **_enabled(trigger_of(row), now, changes.get("enabled"))}
    those = triggers.c.id == trigger_id
    if values:
        connection.execute(update(triggers).where(those).values(values))
    return trigger_of({**row, **values})


def remove(connection: Connection, trigger_id: str) -> None:
    """Delete a trigger.

    Raises:
        NotFound: There is none.
    """
    if not connection.execute(_REMOVE, {"trigger": trigger_id}).rowcount:
        raise NotFound("trigger", trigger_id)


def remove_of(connection: Connection, agent_id: str) -> None:
    """Delete the triggers of an agent."""
    connection.execute(_REMOVE_OF, {"agent": agent_id})


def note(connection: Connection, trigger_id: str, noted: Note) -> bool:
    """Note what an event is to a trigger; count it when it fires.

    Returns:
        Whether this is new: it may be known of this event, rest for its subject, or be
        disabled or deleted since.
    """
    fired, now = noted.outcome == FIRED, noted.now
    said = {
        "trigger": trigger_id,
        "event": noted.event_id,
        "so": noted.outcome,
        "about": noted.subject if fired else "",
        "since": now - (noted.rest if fired else NOTED_EVERY),
        "fired": FIRED,
        "subject": noted.subject,
        # What is too deep is that whether or not a trigger rests.
        "rested": now if noted.outcome == TOO_DEEP else now - noted.rest,
        "now": now,
        "by": noted.owner,
        "tags": json.dumps(sorted(noted.labels)),
    }
    if not connection.execute(_NOTE, said).rowcount:
        return False
    if fired:
        connection.execute(_SPEND, {"trigger": trigger_id, "now": noted.now})
    return True


def fired_at(connection: Connection, event_id: str) -> int:
    """Count the triggers that have fired at an event."""
    return int(connection.execute(_FIRED_AT, {"event": event_id}).scalar_one())


def settled(connection: Connection, event_id: str, agent_id: str = "") -> Settled:
    """Read what an event has come to, and which triggers an agent still has."""
    rows = connection.execute(_SETTLED, {"event": event_id}).mappings().all()
    noted = {row["noted"]: (row["outcome"], row["subject"], row["at"]) for row in rows}
    # One that was deleted since has no row any more.
    now = [trigger_of(row) for row in rows if row["id"] is not None]
    left = (
        connection.execute(_LEFT_OF, {"agent": agent_id}).scalars() if agent_id else ()
    )
    return Settled(noted, now, frozenset(left))


def forget(connection: Connection, now: float) -> None:
    """Delete what is noted of events long ago."""
    connection.execute(_FORGET, {"before": now - KEPT})


def _check(trigger: Trigger) -> None:
    if trigger.session is SessionMode.ROLLING and not trigger.keep:
        raise InvalidInput("keep", "must say how many messages a rolling session keeps")


def _enabled(before: Trigger, now: Trigger, asked: object) -> Mapping[str, Any]:
    """Tell what becomes of ``enabled`` and ``paused``."""
    if asked:
        if now.spent:
            raise InvalidInput(
                "enabled",
                f"it has fired {now.fire_count} times, as often as max_fires allows; "
                "raise max_fires",
            )
        return {"paused": ""}
    if asked is not None:
        return {}
    if now.spent:
        return {"enabled": 0}
    return {"enabled": 1} if before.spent and not before.paused else {}
