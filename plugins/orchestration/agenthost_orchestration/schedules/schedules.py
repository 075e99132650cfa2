"""The schedules of one daemon: made, changed, run, paused."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from agenthost import (
    Conflict,
    Context,
    Denied,
    Host,
    InvalidInput,
    NotFound,
)

from ..background.errands import Errand, Occasion
from .occasions import Occasions, in_the_way, occasion_of
from .schedule import Schedule, schedule_of
from .settings import SchedulesSection
from .telling import Telling
from .texts import ALL, KIND, ONE

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .tables import Limits

UNPAID = frozenset({"billing", "auth"})
"""Codes of failures that come again until a person does something."""
log = logging.getLogger(__name__)


class Schedules:
    """What people and agents do with schedules, and what a source is asked.

    Args:
        host: The daemon.
        occasions: Where what is due is written, and by whom it is done.
        telling: Writes changes, and tells of them.
    """

    kind = KIND

    def __init__(self, host: Host, occasions: Occasions, telling: Telling) -> None:
        self._host = host
        self._occasions = occasions
        self._telling = telling

    async def list(self) -> Sequence[Schedule]:
        """Give all schedules, oldest first."""
        return [schedule_of(row) for row in await self._host.store.read(ALL)]

    async def get(self, schedule_id: str) -> Schedule:
        """Give a schedule.

        Raises:
            NotFound: There is none.
        """
        row = await self._host.store.first(ONE, {"id": schedule_id})
        if row is None:
            raise NotFound("schedule", schedule_id)
        return schedule_of(row)

    async def occasions_of(
        self, schedule_id: str, limit: int, after: str
    ) -> Sequence[Occasion]:
        """Give what became of its times, newest first, behind one if it is named.

        Raises:
            NotFound: There is no such schedule, or no occasion ``after``.
        """
        await self.get(schedule_id)
        listed = self._occasions.list
        return await listed(KIND, schedule_id, limit=limit, after=after)

    async def create(self, context: Context, draft: Schedule) -> Schedule:
        """Keep a new schedule.

        Raises:
            InvalidInput: It is never due.
            Conflict: There are too many.
        """
        from .events import ScheduleCreated
        from .tables import add

        made = self._armed(replace(draft, id=str(uuid4())), context)
        made = replace(made, created_at=made.updated_at)
        event = self._telling.event(ScheduleCreated, made, context)
        await self._telling.write(
            partial(add, schedule=made, limits=self._limits()), event
        )
        return made

    async def change(
        self, context: Context, before: Schedule, draft: Schedule
    ) -> Schedule:
        """Keep a schedule as it was changed from what it was.

        Raises:
            InvalidInput: It is never due.
            Conflict: Its manifest says it, somebody else changed it, or there is no
                room for it.
            NotFound: It has been deleted.
        """
        from .events import ScheduleChanged
        from .tables import change

        if before.origin and replace(draft, enabled=before.enabled) != before:
            raise _of_manifest("changed")
        anew = (draft.when, draft.enabled) != (before.when, before.enabled)
        changed = self._armed(draft, context) if anew else self._by(draft, context)
        event = self._telling.event(ScheduleChanged, changed, context)
        write = partial(change, schedule=changed, before=before, limits=self._limits())
        await self._telling.write(write, event)
        return await self.get(changed.id)

    async def delete(self, context: Context, schedule: Schedule) -> None:
        """Delete a schedule; what runs of it goes on.

        Raises:
            Conflict: Its manifest says it.
            NotFound: It has been deleted.
        """
        from .events import ScheduleDeleted
        from .tables import remove

        if schedule.origin:
            raise _of_manifest("deleted")
        event = self._telling.event(ScheduleDeleted, schedule, context)
        await self._telling.write(partial(remove, schedule_id=schedule.id), event)

    async def run(self, context: Context, schedule: Schedule) -> str:
        """Have it done now, beside its times; give the id of the occasion.

        Raises:
            Conflict: What it did last still runs.
            NotFound: It has been deleted.
        """
        from .events import ScheduleRun
        from .tables import settle

        if stands := await in_the_way(self._host, self._occasions, schedule):
            raise Conflict(f"not now: {stands}; its occasions say more")
        now, by = self._host.clock.time(), {"asked_by": context.owner}
        asked = occasion_of(schedule, (f"asked {uuid4()}", now), now, payload=by)
        told = self._telling.event(ScheduleRun, schedule, context, occasion_id=asked.id)

        def write(connection: Connection) -> None:
            before = settle(connection, schedule.id, {"last": asked.id})
            if before is None:
                raise NotFound("schedule", schedule.id)
            if before.last != schedule.last:
                raise Conflict("not now: it has just begun")
            self._occasions.write(connection, [asked])

        await self._telling.write(write, told)
        self._occasions.wake()
        return asked.id

    async def errand(self, host: Host, occasion: Occasion) -> Errand:
        """Say what is to be done, as the schedule stands now.

        Raises:
            NotFound: The schedule has been deleted.
            Denied: It is switched off; what a person asked for is done all the same.
        """
        del host
        schedule = await self.get(occasion.source_id)
        if not schedule.enabled and "asked_by" not in occasion.payload:
            why = schedule.paused or "somebody switched it off"
            raise Denied(f"the schedule is paused: {why}")
        return replace(schedule.errand, title=schedule.name)

    async def ended(self, host: Host, occasion: Occasion) -> None:
        """Need nothing of it: what stands in the way is read when a time comes."""

    async def pause(self, host: Host, source_id: str, reason: str) -> None:
        """Switch a schedule off until a person resumes it, and keep why.

        Raises:
            NotFound: It has been deleted.
        """
        del host
        from .events import SchedulePaused
        from .tables import settle

        schedule = await self.get(source_id)
        if not schedule.enabled:
            return
        event = self._telling.event(SchedulePaused, schedule, reason=reason)
        values = {
            "enabled": 0,
            "paused": reason,
            "next_at": None,
            "revision": schedule.revision + 1,
        }
        log.warning("schedule %s is paused: %s", schedule.id, reason)
        write = partial(settle, schedule_id=source_id, values=values)
        await self._telling.write(write, event)

    def _armed(self, draft: Schedule, context: Context) -> Schedule:
        """Give a schedule with its next time.

        Raises:
            InvalidInput: It is never due.
        """
        from .times import Times

        now = self._host.clock.time()
        next_at = Times(draft.when).after(now)
        if next_at is None:
            raise InvalidInput("when", "no time lies ahead, or all are in quiet hours")
        armed = next_at if draft.enabled else None
        fresh = replace(draft, next_at=armed, paused="")
        return self._by(fresh, context)

    def _by(self, draft: Schedule, context: Context) -> Schedule:
        now = self._host.clock.time()
        return replace(draft, updated_at=now, owner=context.owner)

    def _limits(self) -> Limits:
        from .tables import Limits

        said = self._host.settings(SchedulesSection)
        return Limits(said.max, said.max_per_agent, round(said.allowance_usd * 1e6))


def _of_manifest(what: str) -> Conflict:
    return Conflict(
        f"the manifest of its agent says this schedule; it is {what} there. It can be "
        "switched off here (enabled)"
    )
