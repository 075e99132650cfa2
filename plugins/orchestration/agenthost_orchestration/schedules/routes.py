"""``/api/schedules``: what is done at times."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from agenthost import Answer, Call, RouteGroup, timestamp

from ..orchestration import orchestration_of
from .drafts import blank, changed, occasion_shown, shown
from .schedules import Schedules
from .shapes import (
    Begun,
    ChangeSchedule,
    CreateSchedule,
    Gone,
    NextQuery,
    NextTimes,
    OccasionList,
    OccasionsQuery,
    ScheduleItem,
    ScheduleList,
)
from .times import Times

READ, WRITE = "schedules:read", "schedules:write"

routes = RouteGroup("orchestration.schedules")


@routes.get("/api/schedules", scope=READ, answer=ScheduleList)
async def list_schedules(call: Call) -> Answer:
    """List all schedules, oldest first."""
    found = await _schedules(call).list()
    return {"schedules": [shown(each) for each in found], "total": len(found)}


@routes.post(
    "/api/schedules",
    scope=WRITE,
    cost=10,
    body=CreateSchedule,
    answer=ScheduleItem,
    status=201,
)
async def create_schedule(call: Call, body: CreateSchedule) -> Answer:
    """Make a schedule; it acts with the rights of whoever makes it."""
    draft = changed(call.host, call.principal, blank(call.host, call.principal), body)
    return shown(await _schedules(call).create(call.context, draft))


@routes.get("/api/schedules/<schedule_id>", scope=READ, answer=ScheduleItem)
async def get_schedule(call: Call, schedule_id: UUID) -> Answer:
    """Show a schedule."""
    return shown(await _schedules(call).get(str(schedule_id)))


@routes.put(
    "/api/schedules/<schedule_id>",
    scope=WRITE,
    cost=10,
    body=ChangeSchedule,
    answer=ScheduleItem,
)
async def change_schedule(
    call: Call, schedule_id: UUID, body: ChangeSchedule
) -> Answer:
    """Change what is said, pause it (enabled: false), or resume it (enabled: true)."""
    schedules = _schedules(call)
    before = await schedules.get(str(schedule_id))
    draft = changed(call.host, call.principal, before, body)
    return shown(await schedules.change(call.context, before, draft))


@routes.delete("/api/schedules/<schedule_id>", scope=WRITE, answer=Gone)
async def delete_schedule(call: Call, schedule_id: UUID) -> Answer:
    """Delete a schedule; what runs of it goes on, and its occasions stay."""
    schedules = _schedules(call)
    await schedules.delete(call.context, await schedules.get(str(schedule_id)))
    return {"status": "deleted", "id": str(schedule_id)}


@routes.post(
    "/api/schedules/<schedule_id>/run",
    scope="schedules:run",
    cost=100,
    answer=Begun,
    status=202,
)
async def run_schedule(call: Call, schedule_id: UUID) -> Answer:
    """Have it done now, beside its times, also while it is paused."""
    schedules = _schedules(call)
    schedule = await schedules.get(str(schedule_id))
    return {"occasion_id": await schedules.run(call.context, schedule)}


@routes.get(
    "/api/schedules/<schedule_id>/occasions",
    scope=READ,
    query=OccasionsQuery,
    answer=OccasionList,
)
async def list_occasions(
    call: Call, schedule_id: UUID, query: OccasionsQuery
) -> Answer:
    """List what became of its times, newest first: done, failed, missed, refused."""
    after = str(query.after) if query.after else ""
    found = await _schedules(call).occasions_of(str(schedule_id), query.limit, after)
    return {"occasions": [occasion_shown(each) for each in found], "total": len(found)}


@routes.get(
    "/api/schedules/<schedule_id>/next",
    scope=READ,
    query=NextQuery,
    answer=NextTimes,
)
async def next_times(call: Call, schedule_id: UUID, query: NextQuery) -> Answer:
    """Tell when it is due next, as it says, whether or not it is paused."""
    schedule = await _schedules(call).get(str(schedule_id))
    times, found = Times(schedule.when), list[float]()
    moment = times.after(call.host.clock.time())
    while moment is not None and len(found) < query.count:
        found.append(moment)
        moment = times.after(moment)
    zone = ZoneInfo(schedule.when.zone)
    return {
        "times": [timestamp(each) for each in found],
        "local": [datetime.fromtimestamp(each, zone).isoformat() for each in found],
        "zone": schedule.when.zone,
    }


def _schedules(call: Call) -> Schedules:
    return orchestration_of(call.host).schedules
