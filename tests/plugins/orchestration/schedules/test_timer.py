"""Times that come, pass unseen, or come again: each is done once or told as missed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import AgentState, Denied
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.clock import START
from agenthost_orchestration.background.errands import OccasionState
from agenthost_orchestration.schedules.texts import DUE

from .stage import Record, WallClock, asleep, kept, made, shows, states

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
    row = await made(daemon, when={"at": "2026-01-01T02:00:00+01:00"})
    async with record.decided():
        await clock.advance(HOUR)
    await record.end()
    shown = (await daemon.http.get(f"/api/schedules/{row['id']}")).json()
    assert (shown["enabled"], shown["next_at"]) == (True, None)
    # It does not come again when the clock is set back before it.
    clock.set_by(-HOUR / 2)
    canary = await made(daemon, when={"cron": "30 1 * * *"})
    async with record.decided():
        await clock.advance(HOUR)
    assert await states(daemon, row["id"]) == [("2026-01-01T01:00:00.000Z", "done")]
    assert len(await states(daemon, canary["id"])) == 1


@pytest.mark.parametrize(
    ("misfire", "stopped", "done"),
    [
        ("skip", 5 * HOUR + 600, False),
        ("once", 400 * DAY + 600, True),
        ({"within_secs": 600}, 5 * HOUR + 601, False),
        (None, 5 * HOUR + 600, True),
    ],
)
async def test_what_lay_in_a_stop_is_done_as_the_policy_says(
    daemons: Daemons, record: Record, misfire: object, stopped: float, *, done: bool
) -> None:
    daemon = await daemons.start(clock=ManualClock(START - 60))
    row = await made(daemon, when={"cron": "0 * * * *"}, misfire=misfire)
    await daemon.daemon.stop()
    async with record.decided():
        daemon = await daemons.start(
            home=daemon.daemon.home, clock=ManualClock(START + stopped)
        )
    found = {each.state: each for each in await record.all()}
    assert (OccasionState.DUE in found) == done
    hours = int(stopped // HOUR) + 1
    if done:
        assert found[OccasionState.DUE].at == START + (hours - 1) * HOUR
    missed = hours - done
    assert (OccasionState.MISSED in found) == (missed > 0)
    if missed:
        told = found[OccasionState.MISSED]
        counted = "1000 or more" if missed > 1000 else str(missed)
        assert told.detail.startswith(f"{counted} times from 2026-01-01T00:00:00.000Z")
        assert told.key.startswith("2026-01-01T00:00:00.000Z/")
    # The next start finds nothing left to decide.
    before = await record.all()
    async with record.decided():
        await daemon.daemon.stop()
        later = ManualClock(START + stopped + HOUR)
        daemon = await daemons.start(home=daemon.daemon.home, clock=later)
    fresh = (await record.all())[len(before) :]
    assert [each.state for each in fresh] in (["due"], ["missed"])
    assert row["id"] == fresh[0].source_id


async def test_a_jump_forward_is_noticed_within_a_minute(
    daemons: Daemons, record: Record
) -> None:
    clock = WallClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when={"cron": "0 * * * *"}, misfire="skip")
    await asleep()
    clock.set_by(5 * HOUR + 600)
    async with record.decided():
        await clock.advance(60)
    assert await states(daemon, row["id"]) == [
        ("2026-01-01T01:00:00.000Z/2026-01-01T05:00:00.000Z", "missed")
    ]


async def test_a_clock_set_back_repeats_nothing_and_stops_nothing(
    daemons: Daemons, record: Record
) -> None:
    clock = WallClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when={"cron": "*/30 * * * *"})
    for _ in range(4):
        async with record.decided():
            await clock.advance(HOUR / 2)
        await record.end()
    # Ten years ahead by mistake, and back to an hour before.
    clock.set_by(3_650 * DAY)
    async with record.decided():
        await clock.advance(60)
    await record.end()
    clock.set_by(-3_650 * DAY - HOUR)
    await clock.advance(60)
    await shows(daemon, row["id"], next_at="2026-01-01T01:30:00.000Z")
    for _ in range(4):
        async with record.decided():
            await clock.advance(HOUR / 2)
        await record.end()
    keys = [key for key, state in await states(daemon, row["id"]) if state == "done"]
    near = [key for key in keys if key.startswith("2026")]
    assert near == [
        f"2026-01-01T0{half // 2}:{half % 2 * 30:02}:00.000Z" for half in range(1, 7)
    ]


async def test_a_time_is_not_lost_while_a_clock_that_was_set_back_is_unnoticed(
    daemons: Daemons, record: Record
) -> None:
    clock = WallClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when={"cron": "0 * * * *"})
    # Set on by ten days, and back to half a minute before a time.
    clock.set_by(10 * DAY)
    async with record.decided():
        await clock.advance(60)
    await record.end()
    clock.set_by(HOUR - 90 - 10 * DAY)
    async with record.decided():
        await clock.advance(60)
    assert ("2026-01-01T01:00:00.000Z", "due") in await states(daemon, row["id"])


async def test_a_clock_that_steps_back_a_little_does_not_go_before_the_schedule(
    daemons: Daemons, record: Record
) -> None:
    clock = WallClock()
    daemon = await daemons.start(clock=clock)
    await clock.advance(60)
    row = await made(daemon, when={"cron": "0 * * * *"})
    await asleep()
    # What a time server does; half an hour ahead is another schedule's.
    clock.set_by(-0.5)
    await made(daemon, when={"cron": "30 * * * *"})
    await shows(daemon, row["id"], next_at="2026-01-01T01:00:00.000Z")
    async with record.decided():
        await clock.advance(HOUR)
    assert await states(daemon, row["id"]) == [("2026-01-01T01:00:00.000Z", "due")]


async def test_what_still_runs_is_not_begun_again_and_that_is_told_once(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when=MINUTELY)
    for _ in range(5):
        async with record.decided():
            await clock.advance(60)
    assert await states(daemon, row["id"]) == [
        ("2026-01-01T00:01:00.000Z", "due"),
        ("2026-01-01T00:02:00.000Z", "missed"),
    ]
    await record.end()
    async with record.decided():
        await clock.advance(60)
    told = await states(daemon, row["id"])
    assert told[2:] == [
        ("2026-01-01T00:03:00.000Z/2026-01-01T00:05:00.000Z", "missed"),
        ("2026-01-01T00:06:00.000Z", "due"),
    ]
    missed = [each for each in await record.all() if each.state == "missed"]
    assert missed[0].detail == "what was due before has not begun yet"
    assert missed[1].detail.startswith("3 times from 2026-01-01T00:03:00.000Z to ")


async def test_a_suspended_agent_is_told_nothing(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    ada = await daemon.agent("ada")
    row = await made(daemon, when=MINUTELY, what={"agent": "ada", "prompt": "go"})
    agents = daemon.daemon.agents
    suspended = replace(agents.get(ada.id), state=AgentState.SUSPENDED)
    agents._by_id[ada.id] = suspended  # type: ignore[attr-defined]  # reason: no route suspends one yet
    for _ in range(3):
        async with record.decided():
            await clock.advance(60)
    assert await states(daemon, row["id"]) == [("2026-01-01T00:01:00.000Z", "missed")]
    assert (
        await daemon.http.post(f"/api/schedules/{row['id']}/run")
    ).status_code == 409


async def test_what_was_paused_goes_on_from_where_a_person_resumes_it(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when=MINUTELY)
    path = f"/api/schedules/{row['id']}"
    await kept(daemon.daemon).pause(daemon.daemon, row["id"], "no money left")
    shown = (await daemon.http.get(path)).json()
    assert (shown["enabled"], shown["paused"]) == (False, "no money left")
    assert shown["next_at"] is None
    await clock.advance(600)
    resumed = (await daemon.http.put(path, json={"enabled": True})).json()
    assert (resumed["paused"], resumed["enabled"]) == (None, True)
    async with record.decided():
        await clock.advance(60)
    assert await states(daemon, row["id"]) == [("2026-01-01T00:11:00.000Z", "due")]


async def test_a_zone_that_is_gone_pauses_its_schedule_and_no_other(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    row, other = [await made(daemon, when=MINUTELY) for _ in range(2)]
    gone = json.dumps({"cron": "0 9 * * *", "zone": "Mars/Olympus"})
    await daemon.daemon.store.change(
        "UPDATE schedules SET terms = json_set(terms, '$.when', json(:gone)) "
        "WHERE id = :id",
        {"gone": gone, "id": row["id"]},
    )
    async with record.decided():
        await clock.advance(60)
    shown = (await daemon.http.get(f"/api/schedules/{row['id']}")).json()
    assert "unknown zone" in shown["paused"]
    assert len(await states(daemon, other["id"])) == 1


async def test_nothing_is_asked_of_anybody_while_no_time_is_near(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await made(daemon, when={"cron": "0 0 1 * *"})
    reads = 0
    first = daemon.daemon.store.first

    async def counted(*asked: Any) -> Any:
        nonlocal reads
        reads += "schedules" in str(asked[0])
        return await first(*asked)

    daemon.daemon.store.first = counted  # type: ignore[method-assign, assignment]  # reason: it counts
    for _ in range(20):
        await clock.advance(DAY / 20)
        # The store answers in turn, so a look that was begun is over by then.
        await daemon.http.get("/api/schedules")
    # A change made before may be looked at late: its agent's, and its own.
    assert reads <= 2
    assert daemon.model.requests == []


async def test_what_was_changed_meanwhile_is_decided_as_it_is_then(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    row = await made(daemon, when=MINUTELY)
    path = f"/api/schedules/{row['id']}"
    store = daemon.daemon.store
    read, changes = store.read, ["changed"]

    async def late(*asked: Any) -> Any:
        found = await read(*asked)
        if asked[0] == DUE and found and changes:
            # After it was read, and before anything is written.
            await daemon.http.put(path, json={"name": changes.pop()})
        return found

    store.read = late  # type: ignore[method-assign, assignment]  # reason: it is late
    async with record.decided():
        await clock.advance(60)
    async with asyncio.timeout(30):
        while not (found := await record.all()):
            pass
    (occasion,) = found
    assert occasion.payload["name"] == "changed"
