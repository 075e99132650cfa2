"""Times that come, pass unseen, or come again: each is done once or told as missed."""

from __future__ import annotations

import json

import pytest
from agenthost import Denied
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.clock import START
from agenthost_orchestration.background.errands import OccasionState

from .stage import Record, WallClock, kept, made, states

HOUR, DAY = 3_600.0, 86_400.0
MINUTELY = {"every_secs": 60}


async def test_each_time_is_done_once_with_what_the_schedule_says_then(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when={"cron": "*/2 * * * *"})
    for _ in range(2):
        async with record.decided():
            await clock.advance(120)
        await record.end()
    assert await states(daemon, row["id"]) == [
        ("2026-01-01T00:02:00.000Z", "done"),
        ("2026-01-01T00:04:00.000Z", "done"),
    ]
    path = f"/api/schedules/{row['id']}"
    assert (await daemon.http.get(path)).json()["next_at"] == "2026-01-01T00:06:00.000Z"
    (occasion, *_) = await record.all()
    await daemon.http.put(path, json={"what": {"event": "other"}})
    errand = await kept(daemon.daemon).errand(daemon.daemon, occasion)
    assert errand.event == {"type": "other", "data": {}}
    await daemon.http.put(path, json={"enabled": False})
    with pytest.raises(Denied, match="somebody switched it off"):
        await kept(daemon.daemon).errand(daemon.daemon, occasion)


async def test_a_moment_comes_once(daemons: Daemons, record: Record) -> None:
    clock = WallClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when={"at": "2026-01-01T01:00:00+01:00"}, misfire="once")
    assert row["next_at"] is None or True
