"""Decisions about times that have come: what is done, what is missed, what is held."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from agenthost import Host, InvalidInput, timestamp

from ..background.errands import Occasion, OccasionState
from .misfire import GRACE, Plan, Stretch, plan
from .occasions import Occasions, in_the_way, occasion_of
from .schedule import Held, Schedule, schedule_of
from .texts import DUE, ON
from .times import Times

if TYPE_CHECKING:
    from sqlalchemy import Connection

LATE = "nothing ran then: the daemon was stopped, or the clock was set forward"
Pause = Callable[[Host, str, str], Awaitable[None]]


class Deciding:
    """Decides about the times of all schedules; each decision is one commit.

    Args:
        host: The daemon.
        occasions: Where what is due is written, and by whom it is done.
        pause: Switches a schedule off, and keeps why.
    """

    def __init__(self, host: Host, occasions: Occasions, pause: Pause) -> None:
        self._host = host
        self._occasions = occasions
        self._pause = pause

    async def walk_again(self, now: float) -> None:
        """Look anew for the next time of each that is not due."""
        from .tables import move

        store = self._host.store
        rows = await store.read(ON)
        ahead = [schedule_of(row) for row in rows if row["next_at"] > now]
        moved = await self._host.workers.in_thread(_moved, ahead, now)
        for schedule, next_at in moved:
            values = {"next_at": next_at}
            await store.write(partial(move, schedule=schedule, values=values))

    async def decide(self, now: float) -> None:
        """Decide about all times up to now."""
        while rows := await self._host.store.read(DUE, {"now": now}):
            for row in rows:
                schedule = schedule_of(row)
                try:
                    await self._decide(schedule, now)
                except InvalidInput as error:
                    # Such as a zone that the machine no longer knows.
                    await self._pause(self._host, schedule.id, error.message)
            self._occasions.wake()

    async def _decide(self, schedule: Schedule, now: float) -> None:
        from .tables import move

        planned = await self._planned(schedule, now)
        stands = await in_the_way(self._host, self._occasions, schedule)
        held, occasions = outcome(schedule, planned, stands, now)
        values = {"next_at": planned.next_at, "held": json.dumps(asdict(held))}
        begun = [each.id for each in occasions if each.state is OccasionState.DUE]
        if begun:
            values["last"] = begun[0]

        def write(connection: Connection) -> None:
            # Somebody may have changed it since it was read: then nothing is decided.
            if move(connection, schedule, values):
                self._occasions.write(connection, occasions)

        await self._host.store.write(write)

    async def _planned(self, schedule: Schedule, now: float) -> Plan:
        due = schedule.next_at
        assert due is not None  # noqa: S101 - what is due has a time
        times = Times(schedule.when)
        if now - due <= GRACE:
            return plan(times, schedule.misfire, due, now)
        # Long stops have many times to look through.
        in_thread = self._host.workers.in_thread
        return await in_thread(plan, times, schedule.misfire, due, now)


def outcome(
    schedule: Schedule, planned: Plan, stands: str, now: float
) -> tuple[Held, Sequence[Occasion]]:
    """Give what becomes of the times that were planned: what is held, what is told.

    The first time at which something stands in the way is told at once, those after it
    in one row when it is gone.
    """
    done, missed, held = planned.done, planned.missed, schedule.held
    told: list[Occasion] = []

    def tell(missed: Stretch, why: str) -> None:
        moment, why = (missed.key, missed.last), missed.told(why)
        told.append(occasion_of(schedule, moment, now, missed=why))

    if missed is not None:
        why = LATE if done is None else f"{LATE}; done once, for {timestamp(done)}"
        tell(missed, why)
    if done is None:
        return held, told
    if not stands:
        if held.count:
            tell(Stretch(held.first, held.last, held.count), held.why)
        return Held(), [*told, occasion_of(schedule, (timestamp(done), done), now)]
    if held.why:
        first = held.first if held.count else done
        return Held(first, done, held.count + 1, held.why), told
    tell(Stretch(done, done, 1), stands)
    return Held(why=stands), told


def _moved(
    schedules: Sequence[Schedule], now: float
) -> Sequence[tuple[Schedule, float | None]]:
    """Find those whose next time is another one than was thought."""
    found = []
    for schedule in schedules:
        try:
            next_at = Times(schedule.when).after(_unseen(schedule, now))
        except InvalidInput:
            # It is paused, with the reason, when it would have been due.
            continue
        if next_at != schedule.next_at:
            found.append((schedule, next_at))
    return found


def _unseen(schedule: Schedule, now: float) -> float:
    """Give since when times may have passed unseen, where the clock was set back.

    What was done of them has its occasion, and is not done again. Of the time before
    somebody last changed the schedule nothing counts.
    """
    changed = schedule.updated_at
    # Set back a little, the clock may stand before the change that was made just now.
    if changed <= now + GRACE:
        return max(now - GRACE, min(changed, now))
    return now - GRACE
