"""What manifests say of when their agents work by themselves."""

from __future__ import annotations

import asyncio
import logging

import pytest
from agenthost import OPERATOR, AgentTerminated, AgentUpdated, Context
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon

from .stage import Record, made, states

EVERY_MINUTE = "schedule = { continuous = { check_interval_secs = 60 } }"


async def said_by(daemon: RunningDaemon, count: int = 1) -> list[dict[str, object]]:
    """Wait until there are so many schedules."""
    while True:
        rows = (await daemon.http.get("/api/schedules")).json()["schedules"]
        if len(rows) == count:
            return list(rows)


@pytest.mark.manifest("schedule")
async def test_a_continuous_agent_is_told_to_look_each_time(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    ada = await daemon.agent("ada", extra=EVERY_MINUTE)
    (row,) = await said_by(daemon)
    assert (row["name"], row["origin"], row["session"]) == ("ada", "manifest", "new")
    assert row["creator"] == {"kind": "agent", "name": ada.id}
    assert row["allowance_usd"] == 0.5
    async with record.decided():
        await clock.advance(60)
    (occasion,) = await record.all()
    assert (occasion.at, occasion.source_id) == (clock.time(), row["id"])
    assert row["what"]["agent_id"] == ada.id  # type: ignore[index]  # reason: JSON


@pytest.mark.manifest("autonomous.quiet_hours", "autonomous.zone")
@pytest.mark.manifest("autonomous.allowance_usd")
async def test_quiet_hours_and_times_are_those_of_its_zone(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    alone = (
        '[autonomous]\nquiet_hours = "22:00-07:00"\nzone = "Asia/Tokyo"\n'
        "allowance_usd = 0.1\n"
    )
    cron = 'schedule = { periodic = { cron = "0 */2 * * *" } }\n'
    await daemon.agent("ada", extra=cron + alone)
    (row,) = await said_by(daemon)
    # 00:00 UTC is 09:00 in Tokyo.
    assert row["next_at"] == "2026-01-01T01:00:00.000Z"
    assert row["allowance_usd"] == 0.1
    answer = await daemon.http.get(f"/api/schedules/{row['id']}/next?count=8")
    hours = [moment[11:13] for moment in answer.json()["local"]]
    assert hours == ["10", "12", "14", "16", "18", "20", "08", "10"]


async def test_what_is_wrong_is_refused_when_the_agent_is_made(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start()
    for key, said in (
        ("schedule.periodic.cron", '{ periodic = { cron = "99 * * * *" } }'),
        ("schedule.periodic.cron", '{ periodic = { cron = "every 1s" } }'),
        ("schedule.periodic.cron", '{ periodic = { cron = "2027-01-01T00:00Z" } }'),
        ("schedule.periodic.cron", "{ periodic = {} }"),
        ("schedule.continuous", "{ continuous = { check_interval_secs = 1 } }"),
        ("schedule.proactive.cond", '{ proactive = { conditions = ["event:x"] } }'),
        ("schedule.proactive.cond", "{ proactive = { conditions = [] } }"),
        ("schedule", '"sometimes"'),
        ("schedule", '{ continuous = {}, periodic = { cron = "every 5m" } }'),
        ("schedule.weekly", "{ weekly = {} }"),
        ("schedule", "3"),
        ("autonomous.quiet_hours", '"reactive"\n[autonomous]\nquiet_hours = "always"'),
        ("autonomous.zone", '"reactive"\n[autonomous]\nzone = "Mars"'),
        ("autonomous.allowance_usd", '"reactive"\n[autonomous]\nallowance_usd = 0'),
    ):
        manifest = f'name = "ada"\nschedule = {said}'
        answer = await daemon.http.post("/api/agents", json={"manifest_toml": manifest})
        assert answer.status_code == 400, said
        assert answer.json()["error"].startswith(key), answer.text


async def test_a_schedule_goes_with_what_its_manifest_says(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    await daemon.agent("ada", extra=EVERY_MINUTE)
    (row,) = await said_by(daemon)
    path = f"/api/schedules/{row['id']}"
    refused = await daemon.http.put(path, json={"name": "mine"})
    assert (refused.status_code, "manifest" in refused.text) == (409, True)
    assert (await daemon.http.delete(path)).status_code == 409
    off = await daemon.http.put(path, json={"enabled": False})
    assert off.json()["enabled"] is False
    host = daemon.daemon
    changed = {"schedule": {"periodic": {"cron": "0 9 * * *"}}}
    await host.agents.change(Context(OPERATOR), host.agents.find("ada"), changed)
    while (await daemon.http.get(path)).json()["when"].get("cron") != "0 9 * * *":  # noqa: ASYNC110 - what it waits for has no event
        await asyncio.sleep(0.01)
    assert (await daemon.http.get(path)).json()["enabled"] is True
    await host.agents.change(
        Context(OPERATOR), host.agents.find("ada"), {"schedule": "reactive"}
    )
    await said_by(daemon, 0)


async def test_an_agent_takes_its_schedules_along(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = await daemon.agent("ada", extra=EVERY_MINUTE)
    await said_by(daemon)
    await made(daemon, what={"agent": "ada", "prompt": "hi"})
    other = await made(daemon)
    await daemon.http.delete(f"/api/agents/{ada.id}")
    assert [row["id"] for row in await said_by(daemon)] == [other["id"]]


async def test_they_go_in_the_very_commit_of_its_end(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = await daemon.agent("ada")
    await made(daemon, what={"agent": "ada", "prompt": "hi"})
    events, store = daemon.daemon.events, daemon.daemon.store
    event = AgentTerminated(ada.id, 0.0, "ada")
    keep = events.keeping(event)
    assert keep is not None
    await store.write(keep)
    assert (await daemon.http.get("/api/schedules")).json()["total"] == 0


async def test_a_start_makes_up_for_what_a_crash_left(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    await daemon.agent("ada", extra=EVERY_MINUTE)
    await daemon.agent("ghost")
    await said_by(daemon)
    await made(daemon, what={"agent": "ghost", "prompt": "hi"})
    await said_by(daemon, 2)
    host, home = daemon.daemon, daemon.daemon.home
    await host.stop()
    daemon = await daemons.start(home=home, clock=ManualClock())
    rows = await said_by(daemon, 2)
    store = daemon.daemon.store
    await store.change("DELETE FROM schedules WHERE origin = 'manifest'")
    await store.change(
        "UPDATE schedules SET agent_id = 'gone', "
        "terms = json_set(terms, '$.errand.agent_id', 'gone')"
    )
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home, clock=ManualClock())
    wanted = [row["id"] for row in rows if row["origin"] == "manifest"]
    async with asyncio.timeout(30):
        while [row["id"] for row in await said_by(daemon)] != wanted:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


async def test_a_start_keeps_the_beat_of_an_interval(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent("ada", extra=EVERY_MINUTE)
    (row,) = await said_by(daemon)
    await daemon.daemon.stop()
    later = ManualClock(clock.time() + 45)
    daemon = await daemons.start(home=daemon.daemon.home, clock=later)
    async with record.decided():
        await later.advance(15)
    assert await states(daemon, str(row["id"])) == [("2026-01-01T00:01:00.000Z", "due")]


async def test_a_manifest_that_was_kept_unread_is_told_in_the_log(
    daemons: Daemons, record: Record, caplog: pytest.LogCaptureFixture
) -> None:
    off = '[plugins]\ndisable = ["orchestration"]\n'
    daemon = await daemons.start(clock=ManualClock(), config=off)
    await daemon.agent("ada", extra='schedule = "sometimes"')
    home = daemon.daemon.home
    await daemon.daemon.stop()
    (home / "config.toml").unlink()
    caplog.set_level(logging.WARNING)
    daemon = await daemons.start(home=home, clock=ManualClock())
    while "the schedule of agent ada: schedule: 'sometimes' is no" not in caplog.text:
        await daemon.http.get("/api/schedules")
    assert (await daemon.http.get("/api/schedules")).json()["total"] == 0
    events = daemon.daemon.events
    assert events.wants(AgentUpdated)
