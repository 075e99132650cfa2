"""What is written of occasions: functions of a connection, each in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from agenthost import JsonObject, Keep
from agenthost_values.value_class import value_class
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from .errands import OPEN, Occasion, OccasionState
from .rows import row_of
from .tables import COLUMN, OF_SOURCE, occasions

STRIKES = frozenset({"billing", "auth"})
"""Failures that the next time will have too, until somebody pays or changes a key."""
DONE_OR_FAILED = (OccasionState.DONE.value, OccasionState.FAILED.value)
UNENDED = [state.value for state in OPEN]
_ADD = insert(occasions)
_KNOWN = select(COLUMN.id).where(OF_SOURCE, COLUMN.key == bindparam("key"))


def add(connection: Connection, new: Iterable[Occasion]) -> Sequence[Occasion]:
    """Write the occasions whose key is new; give which were."""
    written = []
    for each in new:
        key = {
            "source": each.source,
            "source_id": each.source_id,
            "key": each.key,
        }
        if connection.execute(_KNOWN, key).first() is None:
            # What has ended is told by its time, also where a source leaves it out.
            if each.state not in OPEN and each.ended_at is None:
                each = replace(each, ended_at=each.created_at)  # noqa: PLW2901 - the same one, complete
            connection.execute(_ADD, row_of(each))
            written.append(each)
    return written


def begin(
    connection: Connection, occasion_id: str, values: JsonObject, keep: Keep | None
) -> bool:
    """Write that it is being done; False when it was cancelled or has ended."""
    begun = (
        update(occasions)
        .where(
            COLUMN.id == occasion_id,
            COLUMN.state.in_((OccasionState.DUE.value, OccasionState.RUNNING.value)),
        )
        .values(state=OccasionState.RUNNING.value, **values)
    )
    changed = bool(connection.execute(begun).rowcount)
    if changed and keep is not None:
        keep(connection)
    return changed


@value_class
class Ending:
    """How an occasion comes to stand.

    Args:
        values: Its columns.
        keeps: What is kept of its events, in the same commit.
    """

    values: JsonObject
    keeps: tuple[Keep, ...] = ()


def end(connection: Connection, occasion: Occasion, ending: Ending) -> bool:
    """Write what came of it, unless it was ended meanwhile; tell whether it was."""
    values: dict[str, Any] = dict(ending.values)
    if values["state"] in DONE_OR_FAILED and values.get("code") in STRIKES:
        values["strike"] = _strikes_before(connection, occasion) + 1
    written = (
        update(occasions)
        .where(COLUMN.id == occasion.id, COLUMN.state.in_(UNENDED))
        .values(values)
    )
    if not connection.execute(written).rowcount:
        return False
    for keep in ending.keeps:
        keep(connection)
    return True


def _strikes_before(connection: Connection, occasion: Occasion) -> int:
    last = (
        select(COLUMN.strike)
        .where(
            COLUMN.source == occasion.source,
            COLUMN.source_id == occasion.source_id,
            COLUMN.state.in_(DONE_OR_FAILED),
            COLUMN.id != occasion.id,
        )
        .order_by(COLUMN.ended_at.desc(), COLUMN.strike.desc())
        .limit(1)
    )
    return connection.execute(last).scalar_one_or_none() or 0


def forgive(connection: Connection, occasion: Occasion) -> None:
    """Count anew: its source was paused for this."""
    of_source = (
        COLUMN.source == occasion.source,
        COLUMN.source_id == occasion.source_id,
    )
    connection.execute(
        update(occasions).where(*of_source, COLUMN.strike > 0).values(strike=0)
    )


def note(connection: Connection, occasion_id: str, values: JsonObject) -> None:
    """Write more of an occasion, however it stands."""
    connection.execute(
        update(occasions).where(COLUMN.id == occasion_id).values(**values)
    )


def forget(connection: Connection, ids: Sequence[str]) -> None:
    """Delete occasions that have ended."""
    connection.execute(
        delete(occasions).where(COLUMN.id.in_(ids), COLUMN.ended_at.is_not(None))
    )
