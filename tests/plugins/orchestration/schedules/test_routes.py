"""``/api/schedules`` over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost import Conflict, Event, Keep
from agenthost.testing import Daemons, ManualClock
from agenthost_orchestration.schedules.events import ScheduleEvent

from .stage import Record, kept, made


async def test_a_schedule_is_made_shown_changed_and_deleted(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = await daemon.agent("ada")
    row = await made(
        daemon,
        name="weekly",
        when={"cron": "0 9 * * 1", "zone": "Europe/Berlin"},
        what={"agent": "ada", "prompt": "Sum up the week."},
        quiet_hours="22:00-07:00",
    )
    assert row["what"] == {"agent_id": ada.id, "prompt": "Sum up the week."}
    assert row["next_at"] == "2026-01-05T08:00:00.000Z"
    assert (row["session"], row["misfire"]) == ("new", {"within_secs": 86_400})
    assert row["allowance_usd"] == 0.5
    assert row["creator"] == {"kind": "loopback", "name": "loopback"}
    path = f"/api/schedules/{row['id']}"
    assert (await daemon.http.get(path)).json() == row
    changed = await daemon.http.put(
        path, json={"misfire": "skip", "when": {"every_secs": 60}}
    )
    assert changed.json()["misfire"] == "skip"
    assert changed.json()["next_at"] == "2026-01-01T07:00:00.000Z"
    assert changed.json()["quiet_hours"] == "22:00-07:00"
    listed = (await daemon.http.get("/api/schedules")).json()
    assert listed == {"schedules": [changed.json()], "total": 1}
    assert (await daemon.http.delete(path)).json()["status"] == "deleted"
    assert (await daemon.http.get(path)).status_code == 404


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("when", {"when": {}}),
    ("when", {"when": {"cron": "* * * * *", "every_secs": 60}}),
    ("when.every_secs", {"when": {"every_secs": 1}}),
    ("when.cron", {"when": {"cron": "61 * * * *"}}),
    ("when.cron", {"when": {"cron": "* * * * * *"}}),
    ("when.cron", {"when": {"cron": "0 9 31 2 *"}}),
    ("when.zone", {"when": {"cron": "0 9 * * *", "zone": "Mars/Olympus"}}),
    ("when.zone", {"when": {"cron": "0 9 * * *", "zone": "../../etc/passwd"}}),
    ("when.at", {"when": {"at": "2027-01-01T00:00:00"}}),
    ("when", {"when": {"at": "2020-01-01T00:00:00Z"}}),
    ("quiet_hours", {"quiet_hours": "all day"}),
    ("quiet_hours", {"quiet_hours": "07:00-07:00"}),
    ("when", {"quiet_hours": "08:00-10:00"}),
    ("what", {"what": {"agent": "ada"}}),
    ("what", {"what": {"workflow": "w", "event": "e"}}),
    ("what.agent", {"what": {"agent": "nobody", "prompt": "hi"}}),
    ("allowance_usd", {"allowance_usd": 0}),
    ("misfire", {"misfire": "sometimes"}),
    ("misfire", {"misfire": {"within_secs": 0}}),
    ("session", {"session": "mine"}),
    ("name", {"name": ""}),
    ("colour", {"colour": "red"}),
]


async def test_what_is_wrong_is_named(daemons: Daemons, record: Record) -> None:
    daemon = await daemons.start(clock=ManualClock())
    body = {"name": "x", "when": {"cron": "0 9 * * *"}, "what": {"event": "due"}}
    for field, said in WRONG:
        answer = await daemon.http.post("/api/schedules", json={**body, **said})
        assert answer.status_code == 400, said
        assert answer.json()["error"].startswith(field), answer.text
    assert (await daemon.http.get("/api/schedules")).json()["total"] == 0


async def test_a_person_has_it_done_now_once_at_a_time(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    row = await made(daemon, enabled=False)
    path = f"/api/schedules/{row['id']}"
    begun = await daemon.http.post(f"{path}/run")
    assert begun.status_code == 202
    refused = await daemon.http.post(f"{path}/run")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    (occasion,) = await record.end()
    assert occasion.id == begun.json()["occasion_id"]
    errand = await kept(daemon.daemon).errand(daemon.daemon, occasion)
    assert errand.event == {"type": "due", "data": {}}
    assert (await daemon.http.post(f"{path}/run")).status_code == 202


async def test_the_next_times_are_told_as_clocks_show_them(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock(1_774_700_000.0))
    said = {"cron": "30 2 * * *", "zone": "Europe/Berlin"}
    row = await made(daemon, when=said)
    answer = await daemon.http.get(f"/api/schedules/{row['id']}/next?count=2")
    assert answer.json() == {
        "times": ["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"],
        "local": ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        "zone": "Europe/Berlin",
    }


@pytest.mark.setting("schedules.max")
async def test_there_may_be_so_many_and_those_that_are_over_take_no_room(
    daemons: Daemons, record: Record
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock, config="[schedules]\nmax = 2\n")
    await made(daemon, when={"at": "2026-01-01T00:01:00Z"})
    await made(daemon, enabled=False)
    body = {"name": "x", "when": {"cron": "0 9 * * *"}, "what": {"event": "due"}}
    for _ in range(2):
        answer = await daemon.http.post("/api/schedules", json=body)
        assert answer.status_code == 409
        assert "[schedules] max" in answer.json()["error"]
    async with record.decided():
        await clock.advance(60)
    assert (await daemon.http.post("/api/schedules", json=body)).status_code == 201


@pytest.mark.setting("schedules.allowance_usd")
async def test_the_allowance_is_never_none(daemons: Daemons, record: Record) -> None:
    config = "[schedules]\nallowance_usd = 0.25\n"
    daemon = await daemons.start(clock=ManualClock(), config=config)
    assert (await made(daemon))["allowance_usd"] == 0.25
    assert (await made(daemon, allowance_usd=None))["allowance_usd"] == 0.25
    row = await made(daemon, allowance_usd=2)
    path = f"/api/schedules/{row['id']}"
    kept_so = await daemon.http.put(path, json={"allowance_usd": None})
    assert kept_so.json()["allowance_usd"] == 2


async def test_of_two_changes_at_once_none_undoes_the_other(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    row = await made(daemon)
    path = f"/api/schedules/{row['id']}"
    said: list[dict[str, object]] = [
        {"name": "a"},
        {"quiet_hours": "22:00-07:00"},
        {"allowance_usd": 1},
    ]
    answers = await asyncio.gather(*(daemon.http.put(path, json=each) for each in said))
    now = (await daemon.http.get(path)).json()
    for each, answer in zip(said, answers, strict=True):
        assert answer.status_code in {200, 409}
        ((key, value),) = each.items()
        assert (now[key] == value) == (answer.status_code == 200)


async def test_who_changes_what_is_done_answers_for_it(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(config='api_key = "one-long-key"\n')
    daemon.http.headers["authorization"] = "Bearer one-long-key"
    await daemon.agent("ada")
    row = await made(daemon)
    path = f"/api/schedules/{row['id']}"
    keys = {}
    for scope in ("chat", "operate"):
        body = {"name": scope, "scopes": [scope]}
        keys[scope] = (await daemon.http.post("/api/keys", json=body)).json()["key"]
    daemon.http.headers["authorization"] = f"Bearer {keys['chat']}"
    for method in ("PUT", "DELETE"):
        answer = await daemon.http.request(method, path, json={})
        assert answer.status_code == 403
    assert (await daemon.http.get(path)).json()["creator"]["kind"] == "api_key"
    daemon.http.headers["authorization"] = f"Bearer {keys['operate']}"
    off = await daemon.http.put(path, json={"enabled": False})
    assert off.json()["creator"]["kind"] == "api_key"
    told = {"what": {"agent": "ada", "prompt": "hi"}}
    answer = await daemon.http.put(path, json=told)
    assert answer.json()["creator"] == {"kind": "named_key", "name": "operate"}


async def test_a_change_is_kept_in_its_commit_and_then_told(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    events, told, rows = daemon.daemon.events, list[Event](), list[str]()

    def recorded(event: ScheduleEvent) -> Keep:
        if event.name == "refused":
            raise Conflict("not this one")
        return lambda _: rows.append(event.kind)

    events.record(recorded, ScheduleEvent)
    events.subscribe(told.append, ScheduleEvent)
    row = await made(daemon)
    path = f"/api/schedules/{row['id']}"
    await daemon.http.put(path, json={"name": "other"})
    await daemon.http.post(f"{path}/run")
    await kept(daemon.daemon).pause(daemon.daemon, row["id"], "too dear")
    await daemon.http.delete(path)
    assert rows == [each.kind for each in told]
    assert rows == [
        "schedule_created",
        "schedule_changed",
        "schedule_run",
        "schedule_paused",
        "schedule_deleted",
    ]
    assert told[0].by == "loopback:loopback"
    body = {"name": "refused", "when": {"every_secs": 60}, "what": {"event": "due"}}
    assert (await daemon.http.post("/api/schedules", json=body)).status_code == 409
    assert (await daemon.http.get("/api/schedules")).json()["total"] == 0


async def test_of_two_who_want_it_at_once_one_has_it_done(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    path = f"/api/schedules/{(await made(daemon))['id']}/run"
    answers = await asyncio.gather(*(daemon.http.post(path) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [202, *[409] * 7]
    assert len(await record.all()) == 1
